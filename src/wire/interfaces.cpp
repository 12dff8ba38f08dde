// interfaces.cpp: listing interfaces and choosing one.
// SPDX-License-Identifier: Apache-2.0
#include "wire/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <system_error>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"

namespace tutti::wire {

namespace {

unsigned prefix_bits_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  const bool v4 = mask->sa_family == AF_INET;
  const auto* bytes =
      v4 ? reinterpret_cast<const std::uint8_t*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
         : reinterpret_cast<const std::uint8_t*>(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
  unsigned bits = 0;
  for (std::size_t i = 0; i < (v4 ? 4u : 16u); ++i) bits += static_cast<unsigned>(std::popcount(bytes[i]));
  return bits;
}

std::string describe(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& entry : interfaces) {
    fmt::format_to(std::back_inserter(text), "{}{} {}/{}{}", text.empty() ? "" : ", ", entry.name, entry.address.host(),
                   entry.prefix_bits, entry.up ? "" : " (down)");
  }
  return text.empty() ? "none" : text;
}

// Whether one item of a wish means this entry.
bool fits(const Interface& entry, std::string_view item) {
  if (entry.name == item) return true;
  const std::size_t slash = item.find('/');
  const auto network = Address::from_numeric(item.substr(0, slash), 0);
  if (!network) return false;
  if (slash == std::string_view::npos) return entry.address.host() == network->host();
  const auto bits = parse_integer(item.substr(slash + 1));
  return bits && *bits >= 0 && *bits <= 128 && entry.address.in_subnet(*network, static_cast<unsigned>(*bits));
}

// Smaller is better; an interface of rank 4 or more is never chosen unasked.
int preference(const Interface& entry) {
  if (!entry.up || entry.address.is_loopback() || is_virtual_interface(entry.name)) return 4;
  return (entry.address.is_link_local() ? 2 : 0) + (entry.address.family() == AF_INET ? 0 : 1);
}

const Interface* best(const std::vector<const Interface*>& candidates) {
  const auto found = std::min_element(candidates.begin(), candidates.end(), [](const Interface* a, const Interface* b) {
    return preference(*a) < preference(*b);
  });
  return found == candidates.end() ? nullptr : *found;
}

Address choose_wished(const std::vector<Interface>& interfaces, std::string_view wish) {
  for (std::string_view rest = wish; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    std::vector<const Interface*> candidates;
    for (const Interface& entry : interfaces) {
      if (entry.up && fits(entry, item)) candidates.push_back(&entry);
    }
    if (const Interface* chosen = best(candidates)) return chosen->address.with_port(0);
  }
  throw RendezvousError(
      fmt::format("no interface of this machine that is up fits TUTTI_INTERFACE='{}'; there are: {}; "
                  "give a name, an address or a network like 10.1.0.0/16",
                  wish, describe(interfaces)));
}

}  // namespace

bool is_virtual_interface(std::string_view name) {
  constexpr std::array<std::string_view, 14> prefixes = {"docker", "br-",     "virbr", "veth",   "vnet",
                                                         "cni",    "flannel", "cali",  "podman", "lxc",
                                                         "lxdbr",  "tap",     "vbox",  "vmnet"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<Interface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw RendezvousError(
        fmt::format("cannot list the network interfaces: {}", std::generic_category().message(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    interfaces.push_back({.name = entry->ifa_name,
                          .address = Address::from_sockaddr(entry->ifa_addr, bytes).with_port(0),
                          .prefix_bits = prefix_bits_of(entry->ifa_netmask),
                          .up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0});
  }
  return interfaces;
}

std::optional<Address> route_to(const Address& target) {
  const UniqueFd probe(socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return std::nullopt;
  // Connecting a datagram socket only looks up the route. Any port but 0 will do.
  const Address somewhere = target.with_port(target.port() == 0 ? 9 : target.port());
  if (connect(probe.get(), somewhere.data(), somewhere.size()) != 0) return std::nullopt;
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return std::nullopt;
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage), bytes).with_port(0);
}

Address choose_address(const std::vector<Interface>& interfaces, const BindWish& wish) {
  if (!wish.wish.empty()) return choose_wished(interfaces, wish.wish);
  if (wish.meeting_point && wish.meeting_point->is_loopback()) {
    return wish.meeting_point->with_port(0);
  }
  if (wish.meeting_point && !wish.meeting_point->is_any()) {
    for (const Interface& entry : interfaces) {
      if (entry.address == wish.meeting_point->with_port(0)) return entry.address;
    }
    if (wish.route && !wish.route->is_any()) return wish.route->with_port(0);
  }
  std::vector<const Interface*> candidates;
  for (const Interface& entry : interfaces) {
    if (preference(entry) < 4) candidates.push_back(&entry);
  }
  const Interface* chosen = best(candidates);
  return chosen != nullptr ? chosen->address : Address::loopback();
}

}  // namespace tutti::wire
