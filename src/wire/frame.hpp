// frame.hpp: the frame of data and store connections, used after the handshake.
// SPDX-License-Identifier: Apache-2.0
//
// A frame is a head of 24 bytes, up to 256 bytes of extra whose meaning belongs to the type, and a payload. All numbers
// are little-endian:
//
//   u8 type | u8 flags | u16 extra_bytes | u32 epoch | u64 payload_bytes | u32 payload_crc | u32 header_crc | extra |
//   payload
//
// header_crc is the CRC32C of the head before it and of the extra: nothing in a head is believed before it holds. The
// payload is not parsed here: the caller reads it straight to its destination and checks payload_crc
// where it is worth the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"

namespace tutti::wire {

inline constexpr std::size_t frame_head_bytes = 24;
inline constexpr std::size_t frame_extra_bytes_max = 256;

struct FrameHeader {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint16_t extra_bytes = 0;
  std::uint32_t epoch = 0;  // of the group: a rank that comes back to life is fenced off by it
  std::uint64_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// A head with its extra, ready to be sent. No memory is taken: it lives in the connection's queue by value.
class EncodedFrame {
 public:
  // `header.extra_bytes` is taken from `extra`. InvalidArgument for more than frame_extra_bytes_max.
  EncodedFrame(FrameHeader header, std::span<const std::byte> extra);

  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(data_).first(size_); }

 private:
  std::array<std::byte, frame_head_bytes + frame_extra_bytes_max> data_;
  std::size_t size_;
};

// Takes a stream apart, head by head. Feed it bytes, or read straight into space(); when complete(), read
// header().payload_bytes from the stream, then call next().
class FrameParser {
 public:
  struct Limits {
    std::uint64_t payload_bytes_max;
    std::size_t extra_bytes_max = frame_extra_bytes_max;
  };

  explicit FrameParser(const Limits& limits);

  // What the head still lacks, as far as is known; empty when complete.
  [[nodiscard]] std::span<std::byte> space() { return std::span(data_).subspan(filled_, wanted_ - filled_); }
  // `bytes` were put at the front of space(). Throws MalformedMessage on a wrong checksum or a length over its limit;
  // after that the stream is of no more use.
  void filled(std::size_t bytes);
  // The same with a copy; returns how many bytes belonged to the head.
  std::size_t feed(std::span<const std::byte> bytes);

  [[nodiscard]] bool complete() const { return complete_; }
  // True between frames: a stream that ends here ends cleanly.
  [[nodiscard]] bool idle() const { return filled_ == 0; }
  [[nodiscard]] const FrameHeader& header() const { return header_; }
  [[nodiscard]] std::span<const std::byte> extra() const {
    return std::span(data_).subspan(frame_head_bytes, header_.extra_bytes);
  }
  void next();

 private:
  void read_head();
  void check_crc();

  Limits limits_;
  std::array<std::byte, frame_head_bytes + frame_extra_bytes_max> data_{};
  std::size_t filled_ = 0;
  std::size_t wanted_ = frame_head_bytes;
  bool head_read_ = false;
  bool complete_ = false;
  std::uint32_t header_crc_ = 0;
  FrameHeader header_;
};

}  // namespace tutti::wire
