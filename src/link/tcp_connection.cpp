// tcp_connection.cpp: the purpose of a connection, to and from bytes.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_connection.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace tutti::link {

std::string ConnectionPurpose::encode() const {
  ByteWriter writer;
  writer.string("tcp").u64(world).u32(static_cast<std::uint32_t>(from)).u32(static_cast<std::uint32_t>(to));
  writer.u8(static_cast<std::uint8_t>(kind)).u32(stream);
  const std::span<const std::byte> data = writer.data();
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

std::optional<ConnectionPurpose> ConnectionPurpose::decode(std::string_view text) try {
  ByteReader reader(std::as_bytes(std::span(text)), "the purpose of a connection");
  if (reader.string(3) != "tcp") return std::nullopt;
  ConnectionPurpose purpose;
  purpose.world = reader.u64();
  purpose.from = static_cast<std::int32_t>(reader.u32());
  purpose.to = static_cast<std::int32_t>(reader.u32());
  const std::uint8_t kind = reader.u8();
  if (kind > static_cast<std::uint8_t>(ConnectionKind::stream)) return std::nullopt;
  purpose.kind = static_cast<ConnectionKind>(kind);
  purpose.stream = reader.u32();
  reader.expect_end();
  return purpose;
} catch (const MalformedMessage&) {
  return std::nullopt;
}

std::string ConnectionPurpose::text() const {
  return kind == ConnectionKind::control ? "control link" : fmt::format("stream {}", stream);
}

}  // namespace tutti::link
