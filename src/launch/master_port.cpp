// master_port.cpp: ports below the ephemeral range, tried by binding them and claimed by a name among tuttiruns.
// SPDX-License-Identifier: Apache-2.0
#include "launch/master_port.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include <tutti/error.hpp>

#include "launch/options.hpp"

namespace tutti::launch {
namespace {

// Linux hands out 32768 to 60999 by itself; Kubernetes and our own PortWindow use what is just below.
constexpr int first_port = 20000, ports = 10000, tries_max = 200;

// 0, or the errno of bind. SO_REUSEADDR as servers set it: connections of an earlier job that linger are no obstacle.
template <class SocketAddress>
int try_bind(int family, const SocketAddress& address) {
  const UniqueFd probe(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return errno;
  const int yes = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
}

// On all addresses, because that is where torch's store listens.
int try_port(int port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  if (const int error = try_bind(AF_INET, v4)) return error;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  const int error = try_bind(AF_INET6, v6);
  return error == EADDRINUSE || error == EACCES ? error : 0;  // a machine without IPv6 is no obstacle
}

// An abstract socket: gone with the process, and seen only by those who share the network, and so its ports.
UniqueFd claim_port(int port) {
  const std::string name = fmt::format("tuttirun/port/{}", port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd claim(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (claim && bind(claim.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) claim.reset();
  return claim;
}

}  // namespace

MasterPort free_master_port() {
  unsigned start = 0;
  if (getrandom(&start, sizeof(start), 0) != sizeof(start)) start = static_cast<unsigned>(getpid()) * 7919U;
  for (int i = 0; i < tries_max; ++i) {
    const int port = first_port + static_cast<int>((start + static_cast<unsigned>(i)) % ports);
    UniqueFd claim = claim_port(port);
    if (claim && try_port(port) == 0) return {.port = port, .claim = std::move(claim)};
  }
  throw Error(
      fmt::format("tuttirun found no free port for MASTER_PORT among {} from {} on; give one with --master-port",
                  tries_max, first_port + static_cast<int>(start % ports)));
}

MasterPort given_master_port(int port) {
  UniqueFd claim = claim_port(port);
  const int error = claim ? try_port(port) : EADDRINUSE;
  if (error == EADDRINUSE)
    throw UsageError(
        fmt::format("--master-port {}: the port is in use; choose another, or leave it out for a free one", port));
  if (error != 0)
    throw UsageError(fmt::format("--master-port {}: {}; choose another", port, std::generic_category().message(error)));
  return {.port = port, .claim = std::move(claim)};
}

}  // namespace tutti::launch
