// tcp_options.hpp: what can be chosen about the tcp transport.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <tutti/clock.hpp>

#include "wire/handshake.hpp"
#include "wire/socket.hpp"

namespace tutti::link {

// The same on all ranks of a world.
struct TcpOptions {
  int streams = 2;                          // connections per peer and direction for large messages, beside the first
  std::int64_t eager_bytes_max = 64 << 10;  // larger messages wait until the receiver has room
  std::int64_t credit_bytes = 2 << 20;      // what one peer may pile up at another before it is received
  std::int64_t fragment_bytes_max = 256 << 10;  // in which large messages are spread over the streams
  bool payload_checksums = true;                // CRC32C of all payloads; heads always have one
  wire::Encryption encryption = wire::Encryption::none;
  wire::SocketOptions socket{};
  Duration handshake_timeout = std::chrono::seconds(30);
  std::size_t half_open_max = 1024;  // unauthenticated connections
};

// InvalidArgument that names the option which makes no sense.
void check(const TcpOptions& options);

}  // namespace tutti::link
