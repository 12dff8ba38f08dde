// tcp_frames.cpp: the frames of the tcp transport, to and from bytes.
// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_frames.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/crc32c.hpp"

namespace tutti::transport {

namespace {

// What travels is the little-endian picture of these structs.
static_assert(std::endian::native == std::endian::little, "a big-endian machine has to swap the numbers here");

struct MessageFields {
  std::uint64_t group;
  std::uint32_t tag;
  std::uint32_t phase;
  std::uint32_t channel;
  std::uint32_t unused;
  Signature signature;
  std::int64_t bytes;
  std::uint64_t id;
};
static_assert(sizeof(MessageFields) == 72 && std::is_trivially_copyable_v<MessageFields>);
static_assert(sizeof(Numbers) == numbers_bytes);

wire::FrameHeader header_of(FrameType type, std::span<const std::byte> payload, Checksum checksum) {
  const bool checked = checksum == Checksum::on && !payload.empty();
  return {.type = static_cast<std::uint8_t>(type),
          .flags = checked ? checked_flag : std::uint8_t{0},
          .payload_bytes = payload.size(),
          .payload_crc = checked ? crc32c(payload) : 0};
}

wire::EncodedFrame encode_message(wire::FrameHeader header, const Envelope& envelope, std::uint64_t id) {
  header.epoch = envelope.epoch;
  const MessageFields fields{.group = envelope.group,
                             .tag = envelope.tag,
                             .phase = envelope.phase,
                             .channel = envelope.channel,
                             .unused = 0,
                             .signature = envelope.signature,
                             .bytes = envelope.bytes,
                             .id = id};
  return {header, std::as_bytes(std::span(&fields, 1))};
}

wire::EncodedFrame encode(const wire::FrameHeader& header, const Numbers& numbers) {
  return {header, std::as_bytes(std::span(&numbers, 1))};
}

}  // namespace

wire::EncodedFrame encode_eager(const Envelope& envelope, std::span<const std::byte> payload, Checksum checksum) {
  return encode_message(header_of(FrameType::eager, payload, checksum), envelope, 0);
}

wire::EncodedFrame encode_announce(const Envelope& envelope, std::uint64_t id) {
  return encode_message(header_of(FrameType::announce, {}, Checksum::off), envelope, id);
}

Message decode_message(const wire::FrameHeader& header, std::span<const std::byte> extra) {
  MessageFields fields;
  if (extra.size() != sizeof fields) {
    throw MalformedMessage(fmt::format("a message's head has {} bytes instead of {}", extra.size(), sizeof fields));
  }
  std::memcpy(&fields, extra.data(), sizeof fields);
  const bool eager = header.type == static_cast<std::uint8_t>(FrameType::eager);
  const auto payload_bytes = static_cast<std::int64_t>(header.payload_bytes);
  if (fields.bytes < 0 || payload_bytes != (eager ? fields.bytes : 0) || fields.channel > 1 ||
      static_cast<int>(fields.signature.verb) >= verb_count) {
    throw MalformedMessage(
        fmt::format("a message's head contradicts itself (lane {}, verb {}, {} bytes in a frame of {})", fields.channel,
                    static_cast<int>(fields.signature.verb), fields.bytes, payload_bytes));
  }
  return {.envelope = {.group = fields.group,
                       .epoch = header.epoch,
                       .tag = fields.tag,
                       .phase = fields.phase,
                       .channel = fields.channel,
                       .signature = fields.signature,
                       .bytes = fields.bytes},
          .id = fields.id};
}

wire::EncodedFrame encode_numbers(FrameType type, const Numbers& numbers) {
  return encode(header_of(type, {}, Checksum::off), numbers);
}

wire::EncodedFrame encode_data(const Numbers& numbers, std::span<const std::byte> payload, Checksum checksum) {
  return encode(header_of(FrameType::data, payload, checksum), numbers);
}

wire::EncodedFrame encode_control(std::span<const std::byte> message) {
  return encode(header_of(FrameType::control, message, Checksum::on), {});
}

Numbers decode_numbers(std::span<const std::byte> extra) {
  Numbers numbers;
  if (extra.size() != sizeof numbers) {
    throw MalformedMessage(fmt::format("a frame has {} bytes of extra instead of {}", extra.size(), sizeof numbers));
  }
  std::memcpy(&numbers, extra.data(), sizeof numbers);
  return numbers;
}

}  // namespace tutti::transport
