// structure_words_test.cpp: hashes of trees are turned back into words, and the oldest make room.
// SPDX-License-Identifier: Apache-2.0
#include "group/structure_words.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(StructureWords, are_those_that_were_noted_for_the_hash) {
  note_structure(0x1001, "{ ['a'] float32(3,) )");
  EXPECT_EQ(structure_words(0x1001), "{ ['a'] float32(3,) )");
  EXPECT_EQ(structure_words(0x1002), "");
  note_structure(0, "no tree at all");
  EXPECT_EQ(structure_words(0), "");
}

TEST(StructureWords, the_oldest_make_room_for_new_ones) {
  note_structure(0x2000, "the first");
  const std::string large(1 << 20, 'x');
  for (std::uint64_t i = 0; i < 5; ++i) note_structure(0x3000 + i, large);
  EXPECT_EQ(structure_words(0x2000), "");
  EXPECT_EQ(structure_words(0x3004), large);
}

}  // namespace
}  // namespace tutti
