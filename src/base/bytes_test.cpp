// bytes_test.cpp: messages that come back as they went, and messages that are not believed.
// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "base/unique_fd.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Bytes, come_back_as_they_went) {
  ByteWriter writer;
  writer.u8(0xfe).u16(0xfedc).u32(0xfedcba98).u64(0xfedcba9876543210).i64(-2).f64(-0.5).string("groß").string("");
  writer.blob(std::as_bytes(std::span("xy", 2)));
  ByteReader reader(writer.data());
  EXPECT_EQ(reader.u8(), 0xfe);
  EXPECT_EQ(reader.u16(), 0xfedc);
  EXPECT_EQ(reader.u32(), 0xfedcba98);
  EXPECT_EQ(reader.u64(), 0xfedcba9876543210);
  EXPECT_EQ(reader.i64(), -2);
  EXPECT_EQ(reader.f64(), -0.5);
  EXPECT_EQ(reader.string(5), "groß");
  EXPECT_EQ(reader.string(0), "");
  EXPECT_EQ(reader.blob(2).size(), 2u);
  reader.expect_end();
}

TEST(Bytes, are_little_endian_with_32_bit_lengths) {
  ByteWriter writer;
  writer.u16(0x0102).string("A");
  const std::vector<std::byte> expected = {std::byte{2}, std::byte{1}, std::byte{1},  std::byte{0},
                                           std::byte{0}, std::byte{0}, std::byte{'A'}};
  EXPECT_EQ(std::move(writer).take(), expected);
}

TEST(Bytes, a_message_cut_anywhere_is_malformed) {
  ByteWriter writer;
  writer.u8(1).u32(2).string("abc").u64(3);
  for (std::size_t length = 0; length < writer.size(); ++length) {
    ByteReader reader(writer.data().first(length), "a test message");
    const auto read = [&] {
      reader.u8();
      reader.u32();
      reader.string(10);
      reader.u64();
    };
    EXPECT_THAT(read, ThrowsMessage<MalformedMessage>(HasSubstr("a test message"))) << length;
  }
}

TEST(Bytes, a_length_beyond_the_limit_is_refused_before_memory_is_taken) {
  ByteWriter writer;
  writer.u32(0xffffffff);
  EXPECT_THAT([&] { ByteReader(writer.data()).string(100); },
              ThrowsMessage<MalformedMessage>(AllOf(HasSubstr("4294967295"), HasSubstr("at most 100"))));
  EXPECT_THROW(ByteReader(writer.data()).blob(0xffffffff), MalformedMessage) << "within the limit, but not there";
}

TEST(Bytes, left_over_bytes_are_malformed) {
  ByteWriter writer;
  writer.u16(1);
  ByteReader reader(writer.data());
  reader.u8();
  EXPECT_EQ(reader.remaining(), 1u);
  EXPECT_THROW(reader.expect_end(), MalformedMessage);
}

bool is_open(int fd) { return ::lseek(fd, 0, SEEK_CUR) != -1 || errno != EBADF; }

TEST(UniqueFd, closes_once_and_moves_ownership) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd writing(ends[1]);
  {
    UniqueFd reading(ends[0]);
    UniqueFd taken = std::move(reading);
    EXPECT_FALSE(reading);  // NOLINT: the state after a move is part of the contract
    EXPECT_EQ(taken.get(), ends[0]);
    EXPECT_TRUE(is_open(ends[0]));
  }
  EXPECT_FALSE(is_open(ends[0]));
  EXPECT_TRUE(is_open(ends[1]));
  errno = EAGAIN;
  writing.reset();
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(is_open(ends[1]));
}

}  // namespace
}  // namespace tutti
