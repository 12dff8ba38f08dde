// tcp_frames.hpp: the frames that two ranks exchange over tcp, and what their extra says.
// SPDX-License-Identifier: Apache-2.0
//
//   sender → receiver, stream 0      eager (message, its bytes) · announce (message) · abort (message)
//   sender → receiver, streams 1…k   data (grant, offset, bytes)
//   receiver → sender, stream 0      grant (message, grant) · drop (message) · credit (bytes)
//   either way, control link         control (bytes)
//   either way, every link           goodbye (links that its sender has opened)
//
// A message of up to the eager limit travels at once, as long as the credit lasts; a longer one is announced, and its
// bytes follow when the receiver has room and grants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tutti/transport.hpp>

#include "wire/frame.hpp"

namespace tutti::transport {

enum class FrameType : std::uint8_t {
  eager = 1,
  announce = 2,
  cts = 3,
  data = 4,
  abort = 5,
  drop = 6,
  credit = 7,
  control = 8,
  goodbye = 9,
};

inline constexpr std::uint8_t checked_flag = 1;  // payload_crc holds
inline constexpr std::size_t control_bytes_max = 64 << 10;
inline constexpr std::uint64_t frame_payload_bytes_max = std::uint64_t{1} << 30;

enum class Checksum : std::uint8_t { off, on };

// Message: the head of an eager or announce frame. `id` is by what the sender finds an announced message again.
struct Message {
  Envelope envelope;
  std::uint64_t id = 0;
};
wire::EncodedFrame encode_eager(const Envelope& envelope, std::span<const std::byte> payload, Checksum checksum);
wire::EncodedFrame encode_announce(const Envelope& envelope, std::uint64_t id);
// Throws MalformedMessage if it is not one.
Message decode_message(const wire::FrameHeader& header, std::span<const std::byte> extra);

// All other frames have two numbers: (message, grant), (grant, offset), (message, 0), (bytes, 0), (links, 0) of a goodbye,
// or none.
struct Numbers {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};
inline constexpr std::size_t numbers_bytes = 16;
wire::EncodedFrame encode_numbers(FrameType type, const Numbers& numbers);
wire::EncodedFrame encode_data(const Numbers& numbers, std::span<const std::byte> payload, Checksum checksum);
wire::EncodedFrame encode_control(std::span<const std::byte> message);
Numbers decode_numbers(std::span<const std::byte> extra);

}  // namespace tutti::transport
