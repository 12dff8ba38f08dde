// tcp_link.cpp: the purpose of a connection, to and from bytes.
// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_link.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace tutti::transport {

std::string LinkPurpose::encode() const {
  ByteWriter writer;
  writer.string("tcp").u64(world).u32(static_cast<std::uint32_t>(from)).u32(static_cast<std::uint32_t>(to));
  writer.u8(static_cast<std::uint8_t>(kind)).u32(stream);
  const std::span<const std::byte> data = writer.data();
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

std::optional<LinkPurpose> LinkPurpose::decode(std::string_view text) try {
  ByteReader reader(std::as_bytes(std::span(text)), "the purpose of a connection");
  if (reader.string(3) != "tcp") return std::nullopt;
  LinkPurpose purpose;
  purpose.world = reader.u64();
  purpose.from = static_cast<std::int32_t>(reader.u32());
  purpose.to = static_cast<std::int32_t>(reader.u32());
  const std::uint8_t kind = reader.u8();
  if (kind > static_cast<std::uint8_t>(LinkKind::stream)) return std::nullopt;
  purpose.kind = static_cast<LinkKind>(kind);
  purpose.stream = reader.u32();
  reader.expect_end();
  return purpose;
} catch (const MalformedMessage&) {
  return std::nullopt;
}

std::string LinkPurpose::text() const {
  return kind == LinkKind::control ? "control link" : fmt::format("stream {}", stream);
}

}  // namespace tutti::transport
