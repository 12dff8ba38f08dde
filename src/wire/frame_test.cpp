// frame_test.cpp: frames survive being cut anywhere, and damage is noticed before memory is taken.
// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace tutti::wire {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

FrameHeader some_header() {
  return {.type = 7, .flags = 0x81, .extra_bytes = 5, .epoch = 3, .payload_bytes = 1u << 20, .payload_crc = 0xdeadbeef};
}

std::vector<std::byte> some_frame() {
  const EncodedFrame frame(some_header(), bytes_of("extra"));
  return {frame.bytes().begin(), frame.bytes().end()};
}

TEST(Frame, ComesBackAsItWasSent) {
  FrameParser parser({.payload_bytes_max = 1u << 20});
  const auto frame = some_frame();
  EXPECT_EQ(parser.feed(frame), frame.size());
  ASSERT_TRUE(parser.complete());
  EXPECT_EQ(parser.header(), some_header());
  EXPECT_THAT(parser.extra(), testing::ElementsAreArray(bytes_of("extra")));
}

TEST(Frame, MayArriveCutAtAnyByte) {
  const auto frame = some_frame();
  for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
    FrameParser parser({.payload_bytes_max = 1u << 20});
    EXPECT_EQ(parser.feed(std::span(frame).first(cut)), cut);
    EXPECT_EQ(parser.complete(), cut == frame.size());
    EXPECT_EQ(parser.feed(std::span(frame).subspan(cut)), frame.size() - cut);
    ASSERT_TRUE(parser.complete()) << "cut at " << cut;
    EXPECT_EQ(parser.header(), some_header());
  }
}

TEST(Frame, LeavesThePayloadInTheStream) {
  auto stream = some_frame();
  const std::size_t head = stream.size();
  stream.resize(head + 100);
  FrameParser parser({.payload_bytes_max = 1u << 20});
  EXPECT_EQ(parser.feed(stream), head);
  parser.next();
  EXPECT_TRUE(parser.idle());
  EXPECT_EQ(parser.feed(some_frame()), head);
  EXPECT_TRUE(parser.complete());
}

TEST(Frame, MayBeReadStraightIntoTheParser) {
  const auto frame = some_frame();
  FrameParser parser({.payload_bytes_max = 1u << 20});
  std::size_t position = 0;
  while (!parser.complete()) {
    const std::size_t piece = std::min<std::size_t>(3, parser.space().size());
    ASSERT_GT(piece, 0u);
    std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(position), piece, parser.space().begin());
    parser.filled(piece);
    position += piece;
  }
  EXPECT_EQ(position, frame.size());
  EXPECT_EQ(parser.header(), some_header());
}

TEST(Frame, AnyFlippedBitIsNoticed) {
  const auto frame = some_frame();
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    FrameParser parser({.payload_bytes_max = ~0ull});
    try {
      parser.feed(damaged);
      EXPECT_FALSE(parser.complete()) << "bit " << bit;  // a longer extra: it still waits for the rest
    } catch (const MalformedMessage&) {}
  }
}

TEST(Frame, APayloadOverTheLimitIsRefusedFromItsHeadAlone) {
  FrameParser parser({.payload_bytes_max = (1u << 20) - 1});
  EXPECT_THROW(parser.feed(some_frame()), MalformedMessage);
}

TEST(Frame, AnExtraOverTheLimitIsRefusedBeforeItIsRead) {
  FrameParser parser({.payload_bytes_max = 1u << 20, .extra_bytes_max = 4});
  const auto frame = some_frame();
  EXPECT_THROW(parser.feed(std::span(frame).first(frame_head_bytes)), MalformedMessage);
  EXPECT_THROW(EncodedFrame({}, std::vector<std::byte>(frame_extra_bytes_max + 1)), InvalidArgument);
}

TEST(Frame, TheLargestExtraFits) {
  const std::vector<std::byte> extra(frame_extra_bytes_max, std::byte{0x5a});
  FrameParser parser({.payload_bytes_max = 0});
  parser.feed(EncodedFrame({.type = 1}, extra).bytes());
  ASSERT_TRUE(parser.complete());
  EXPECT_THAT(parser.extra(), testing::ElementsAreArray(extra));
}

}  // namespace
}  // namespace tutti::wire
