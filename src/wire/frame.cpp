// frame.cpp: encoding and checking the heads of frames.
// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.hpp"

namespace tutti::wire {

namespace {

constexpr std::size_t crc_offset = frame_head_bytes - sizeof(std::uint32_t);

template <std::unsigned_integral T>
std::byte* store_little_endian(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *to++ = static_cast<std::byte>(value >> (8 * i));
  return to;
}

std::uint32_t header_crc(std::span<const std::byte> head_and_extra) {
  const std::uint32_t head = crc32c(head_and_extra.first(crc_offset));
  return crc32c(head_and_extra.subspan(frame_head_bytes), head);
}

}  // namespace

EncodedFrame::EncodedFrame(FrameHeader header, std::span<const std::byte> extra)
    : size_(frame_head_bytes + extra.size()) {
  if (extra.size() > frame_extra_bytes_max) {
    throw InvalidArgument(fmt::format("a frame of type {} cannot carry {} bytes of extra, at most {}", header.type,
                                      extra.size(), frame_extra_bytes_max));
  }
  std::byte* to = data_.data();
  to = store_little_endian(to, header.type);
  to = store_little_endian(to, header.flags);
  to = store_little_endian(to, static_cast<std::uint16_t>(extra.size()));
  to = store_little_endian(to, header.epoch);
  to = store_little_endian(to, header.payload_bytes);
  to = store_little_endian(to, header.payload_crc);
  std::copy(extra.begin(), extra.end(), data_.begin() + frame_head_bytes);
  store_little_endian(to, header_crc(bytes()));
}

FrameParser::FrameParser(const Limits& limits) : limits_(limits) {
  limits_.extra_bytes_max = std::min(limits_.extra_bytes_max, frame_extra_bytes_max);
}

void FrameParser::filled(std::size_t bytes) {
  filled_ += bytes;
  if (filled_ == wanted_ && !head_read_) read_head();
  if (filled_ == wanted_ && head_read_ && !complete_) check_crc();
}

std::size_t FrameParser::feed(std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  while (!complete_ && taken < bytes.size()) {
    const std::span<std::byte> to = space();
    const std::size_t piece = std::min(to.size(), bytes.size() - taken);
    std::memcpy(to.data(), bytes.data() + taken, piece);
    taken += piece;
    filled(piece);
  }
  return taken;
}

// The length of the extra must be believed to find the end of what the checksum covers; it is bounded by our own array.
void FrameParser::read_head() {
  const std::span<const std::byte> head = std::span(data_).first(frame_head_bytes);
  ByteReader reader(head, "the head of a frame");
  header_.type = reader.u8();
  header_.flags = reader.u8();
  header_.extra_bytes = reader.u16();
  header_.epoch = reader.u32();
  header_.payload_bytes = reader.u64();
  header_.payload_crc = reader.u32();
  header_crc_ = reader.u32();
  if (header_.extra_bytes > limits_.extra_bytes_max) {
    throw MalformedMessage(
        fmt::format("a frame claims {} bytes of extra, at most {} are allowed; the stream is damaged",
                    header_.extra_bytes, limits_.extra_bytes_max));
  }
  head_read_ = true;
  wanted_ = frame_head_bytes + header_.extra_bytes;
}

void FrameParser::check_crc() {
  if (header_crc(std::span(data_).first(wanted_)) != header_crc_) {
    throw MalformedMessage("the checksum of a frame's head is wrong; the stream is damaged, or not one of frames");
  }
  if (header_.payload_bytes > limits_.payload_bytes_max) {
    throw MalformedMessage(fmt::format("a frame of type {} claims a payload of {} bytes, at most {} are allowed",
                                       header_.type, header_.payload_bytes, limits_.payload_bytes_max));
  }
  complete_ = true;
}

void FrameParser::next() {
  filled_ = 0;
  wanted_ = frame_head_bytes;
  head_read_ = complete_ = false;
  header_ = {};
}

}  // namespace tutti::wire
