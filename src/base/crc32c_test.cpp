// crc32c_test.cpp: published check values, and both variants against each other at every length and offset that matters.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace tutti {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> noise(std::size_t size) {
  Random random(size);
  std::vector<std::byte> data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random.next());
  return data;
}

TEST(Crc32c, gives_the_published_values) {
  EXPECT_EQ(crc32c(bytes_of("")), 0u);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
  std::vector<std::byte> rising(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
}

TEST(Crc32c, the_table_gives_the_published_values_too) {
  EXPECT_EQ(detail::crc32c_by_table(bytes_of("123456789"), 0), 0xe3069283u);
}

TEST(Crc32c, instruction_and_table_agree_around_every_block_size_and_at_every_offset) {
  const auto data = noise(40'000);
  const std::span<const std::byte> all = data;
  for (const std::size_t size :
       {0, 1, 7, 8, 9, 63, 767, 768, 769, 1536, 12'287, 12'288, 12'289, 13'056, 24'576, 39'990}) {
    for (std::size_t offset = 0; offset < 9; ++offset) {
      const auto part = all.subspan(offset, size);
      ASSERT_EQ(crc32c(part, 77), detail::crc32c_by_table(part, 77)) << size << " bytes at " << offset;
    }
  }
}

TEST(Crc32c, pieces_add_up_to_the_whole) {
  const auto data = noise(20'000);
  const std::span<const std::byte> all = data;
  for (const std::size_t cut : {0, 1, 13, 4096, 12'288, 19'999, 20'000}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all)) << cut;
  }
}

TEST(Crc32c, notices_any_single_flipped_bit) {
  auto data = noise(1000);
  const std::uint32_t right = crc32c(data);
  for (std::size_t bit = 0; bit < 8000; bit += 7) {
    data[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_NE(crc32c(data), right) << bit;
    data[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
}

}  // namespace
}  // namespace tutti
