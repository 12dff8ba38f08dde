// address.cpp: parsing, printing and resolving addresses.
// SPDX-License-Identifier: Apache-2.0
#include "wire/address.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include <tutti/error.hpp>

#include "base/printable.hpp"
#include "base/start_thread.hpp"

namespace tutti::wire {

namespace {

constexpr std::string_view v4_in_v6_prefix{"\0\0\0\0\0\0\0\0\0\0\xff\xff", 12};

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

struct Lookup {
  AddressList list{nullptr, &freeaddrinfo};
  int error = 0;
};

Lookup look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  Lookup lookup;
  lookup.error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  lookup.list.reset(lookup.error == 0 ? found : nullptr);
  return lookup;
}

std::vector<Address> addresses_of(const Lookup& lookup, std::uint16_t port) {
  std::vector<Address> addresses;
  for (const addrinfo* entry = lookup.list.get(); entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    const Address address = Address::from_sockaddr(entry->ai_addr, entry->ai_addrlen).with_port(port);
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

[[noreturn]] void throw_unresolved(const HostPort& where, std::string_view why) {
  throw RendezvousError(
      fmt::format("the host name '{}' does not resolve: {}; check its spelling, /etc/hosts and the name service of "
                  "this machine, or give a numeric address",
                  where.host, why));
}

std::uint16_t parse_port(std::string_view text, std::string_view whole) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || port > 65535) {
    throw InvalidArgument(
        fmt::format("'{}' is no host:port: the port '{}' is not a number from 0 to 65535", whole, text));
  }
  return static_cast<std::uint16_t>(port);
}

}  // namespace

Address Address::from_sockaddr(const sockaddr* socket_address, socklen_t bytes) {
  Address address;
  const bool v4 = socket_address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in);
  const bool v6 = socket_address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6);
  if (v4) std::memcpy(&address.storage_.v4, socket_address, sizeof(sockaddr_in));
  if (v6) std::memcpy(&address.storage_.v6, socket_address, sizeof(sockaddr_in6));
  if (!v4 && !v6) {
    throw InvalidArgument(fmt::format("address family {} is neither IPv4 nor IPv6", socket_address->sa_family));
  }
  return address;
}

std::optional<Address> Address::from_numeric(std::string_view host, std::uint16_t port) {
  if (host.empty()) return std::nullopt;
  const Lookup lookup = look_up(std::string(host), AI_NUMERICHOST);
  const std::vector<Address> addresses = addresses_of(lookup, port);
  return addresses.empty() ? std::nullopt : std::optional(addresses.front());
}

Address Address::loopback(std::uint16_t port) {
  Address address;
  address.storage_.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address.with_port(port);
}

Address Address::loopback_v6(std::uint16_t port) {
  Address address;
  address.storage_.v6 = {};
  address.storage_.v6.sin6_family = AF_INET6;
  address.storage_.v6.sin6_addr = in6addr_loopback;
  return address.with_port(port);
}

socklen_t Address::size() const { return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

std::uint16_t Address::port() const {
  return ntohs(family() == AF_INET ? storage_.v4.sin_port : storage_.v6.sin6_port);
}

Address Address::with_port(std::uint16_t port) const {
  Address address = *this;
  (family() == AF_INET ? address.storage_.v4.sin_port : address.storage_.v6.sin6_port) = htons(port);
  return address;
}

std::string_view Address::raw() const {
  if (family() == AF_INET) return {reinterpret_cast<const char*>(&storage_.v4.sin_addr), 4};
  const std::string_view bytes{reinterpret_cast<const char*>(&storage_.v6.sin6_addr), 16};
  return bytes.starts_with(v4_in_v6_prefix) ? bytes.substr(12) : bytes;
}

bool Address::is_loopback() const {
  const std::string_view bytes = raw();
  if (bytes.size() == 4) return bytes[0] == 127;
  return std::memcmp(bytes.data(), &in6addr_loopback, 16) == 0;
}

bool Address::is_any() const {
  const std::string_view bytes = raw();
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

bool Address::is_link_local() const {
  const std::string_view bytes = raw();
  const auto first = static_cast<std::uint8_t>(bytes[0]);
  const auto second = static_cast<std::uint8_t>(bytes[1]);
  return bytes.size() == 4 ? first == 169 && second == 254 : first == 0xfe && (second & 0xc0) == 0x80;
}

bool Address::in_subnet(const Address& network, unsigned prefix_bits) const {
  const std::string_view mine = raw();
  const std::string_view theirs = network.raw();
  if (mine.size() != theirs.size() || prefix_bits > mine.size() * 8) return false;
  const std::size_t whole = prefix_bits / 8;
  if (mine.substr(0, whole) != theirs.substr(0, whole)) return false;
  const unsigned rest = prefix_bits % 8;
  if (rest == 0) return true;
  const auto difference = static_cast<std::uint8_t>(mine[whole] ^ theirs[whole]);
  return (difference >> (8 - rest)) == 0;
}

std::string Address::host() const {
  char text[NI_MAXHOST];
  const int error = getnameinfo(data(), size(), text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text : gai_strerror(error);
}

std::string Address::text() const { return HostPort{.host = host(), .port = port()}.text(); }

bool operator==(const Address& a, const Address& b) {
  if (a.family() != b.family() || a.port() != b.port() || a.raw() != b.raw()) return false;
  return a.family() == AF_INET || a.storage_.v6.sin6_scope_id == b.storage_.v6.sin6_scope_id;
}

HostPort HostPort::parse(std::string_view given) {
  const std::string text = printable_text(given);  // it may come from another process, and goes into errors
  if (text != given) throw InvalidArgument(fmt::format("'{}' is no host:port: it has control characters", text));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    throw InvalidArgument(fmt::format("'{}' is no host:port: there is no port", text));
  }
  std::string_view host = std::string_view(text).substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw InvalidArgument(fmt::format("'{}' is no host:port: the host is empty", text));
  if (!bracketed && host.find(':') != std::string_view::npos) {
    throw InvalidArgument(fmt::format("'{}' is ambiguous: write an IPv6 address in brackets, [address]:port", text));
  }
  return {.host = std::string(host), .port = parse_port(std::string_view(text).substr(colon + 1), text)};
}

std::string HostPort::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// getaddrinfo cannot be interrupted, so it runs on a thread of its own that outlives a missed deadline; everything it
// touches is owned by the shared state.
std::vector<Address> resolve(const HostPort& where, TimePoint deadline) {
  if (const auto numeric = Address::from_numeric(where.host, where.port)) return {*numeric};
  if (where.host.empty()) throw_unresolved(where, "it is empty");

  struct Answer {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<Lookup> lookup;
  };
  const auto answer = std::make_shared<Answer>();
  start_thread("to look a host's name up", [answer, host = where.host] {
    Lookup lookup = look_up(host, AI_ADDRCONFIG);
    // AI_ADDRCONFIG hides loopback-only families, which is all a machine without a network has.
    if (lookup.error != 0) lookup = look_up(host, 0);
    const std::lock_guard lock(answer->mutex);
    answer->lookup = std::move(lookup);
    answer->ready.notify_all();
  }).detach();

  std::unique_lock lock(answer->mutex);
  if (!answer->ready.wait_until(lock, deadline, [&] { return answer->lookup.has_value(); })) {
    throw_unresolved(where, "the name service did not answer in time");
  }
  if (answer->lookup->error != 0) throw_unresolved(where, gai_strerror(answer->lookup->error));
  std::vector<Address> addresses = addresses_of(*answer->lookup, where.port);
  if (addresses.empty()) throw_unresolved(where, "it has neither an IPv4 nor an IPv6 address");
  return addresses;
}

}  // namespace tutti::wire
