// tcp_frames.cpp: the frames of the tcp link, to and from bytes.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_frames.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/crc32c.hpp"

namespace tutti::link {

wire::EncodedFrame encode(const Frame& frame, Checksum checksum) {
  const bool checked = checksum == Checksum::on && !frame.payload.empty();
  return {{.type = frame.type,
           .flags = checked ? checked_flag : std::uint8_t{0},
           .payload_bytes = frame.payload.size(),
           .payload_crc = checked ? crc32c(frame.payload) : 0},
          frame.head};
}

wire::EncodedFrame encode_goodbye(std::uint64_t opened_connections) {
  return encode({.type = goodbye_frame, .head = std::as_bytes(std::span(&opened_connections, 1))}, Checksum::off);
}

std::uint64_t decode_goodbye(std::span<const std::byte> head) {
  std::uint64_t opened_connections = 0;
  if (head.size() != sizeof opened_connections) {
    throw MalformedMessage(fmt::format("a goodbye has {} bytes instead of {}", head.size(), sizeof opened_connections));
  }
  std::memcpy(&opened_connections, head.data(), sizeof opened_connections);
  return opened_connections;
}

}  // namespace tutti::link
