// address.hpp: where a socket is: an IPv4 or IPv6 address with its port, parsed, resolved and printed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::wire {

// A numeric address: no name lookups happen behind it. A value; two are equal if a socket could not tell them apart.
class Address {
 public:
  Address() = default;  // 0.0.0.0:0
  static Address from_sockaddr(const sockaddr* socket_address, socklen_t bytes);
  // "10.0.0.1", "::1" or "fe80::1%eth0"; nullopt if `host` is a name.
  static std::optional<Address> from_numeric(std::string_view host, std::uint16_t port);
  static Address loopback(std::uint16_t port = 0);
  static Address loopback_v6(std::uint16_t port = 0);

  [[nodiscard]] const sockaddr* data() const { return &storage_.any; }
  [[nodiscard]] socklen_t size() const;
  [[nodiscard]] int family() const { return storage_.any.sa_family; }
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] Address with_port(std::uint16_t port) const;

  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_any() const;         // 0.0.0.0 or ::, "all interfaces" when listened on
  [[nodiscard]] bool is_link_local() const;  // 169.254/16 or fe80::/10
  [[nodiscard]] bool in_subnet(const Address& network, unsigned prefix_bits) const;

  [[nodiscard]] std::string host() const;  // "10.0.0.1", "::1"
  [[nodiscard]] std::string text() const;  // "10.0.0.1:80", "[::1]:80"

  friend bool operator==(const Address& a, const Address& b);

 private:
  // The bytes of the address itself, IPv4 in IPv6 shown as IPv4, so that ::ffff:127.0.0.1 is loopback too.
  [[nodiscard]] std::string_view raw() const;

  union Storage {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  Storage storage_{.v4 = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}}};
};

// What people write: a name or number and a port.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  // "host:port", "10.0.0.1:80", "[::1]:80"; InvalidArgument says what is wrong.
  static HostPort parse(std::string_view text);
  [[nodiscard]] std::string text() const;
};

// All addresses of a host, in the order to try. Throws RendezvousError that names the host if it does not resolve, or
// not by the deadline.
std::vector<Address> resolve(const HostPort& where, TimePoint deadline);

}  // namespace tutti::wire
