// hash_test.cpp: numbers that must never change, and chance that is fair.
// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace tutti {
namespace {

// splitmix64 with seed 0, as published by its author: scramble is its output function.
TEST(Hash, scrambles_as_splitmix64_does) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15u;
  EXPECT_EQ(scramble(step), 0xe220a8397b1dcdafu);
  EXPECT_EQ(scramble(2 * step), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(scramble(3 * step), 0x06c45d188009454fu);
}

TEST(Hash, tells_order_length_and_boundaries_apart) {
  std::set<std::uint64_t> values;
  values.insert(Hash().value());
  values.insert(Hash().add(0).value());
  values.insert(Hash().add(0).add(0).value());
  values.insert(Hash().add(1).add(2).value());
  values.insert(Hash().add(2).add(1).value());
  values.insert(Hash().add("").value());
  values.insert(Hash().add("ab").add("c").value());
  values.insert(Hash().add("a").add("bc").value());
  values.insert(Hash().add("abc").value());
  values.insert(Hash().add(std::string_view("abc\0", 4)).value());
  values.insert(Hash(1).add("abc").value());
  EXPECT_EQ(values.size(), 10u) << "add(0) and add(\"\") are the same word, all others differ";
}

TEST(Hash, moves_about_half_of_the_bits_for_one_that_changes) {
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t moved = Hash().add(12345).value() ^ Hash().add(12345 ^ (std::uint64_t{1} << bit)).value();
    EXPECT_GE(std::popcount(moved), 16) << bit;
    EXPECT_LE(std::popcount(moved), 48) << bit;
  }
}

TEST(Random, gives_the_numbers_of_its_seed_for_ever) {  // computed by a separate program
  Random random(42);
  EXPECT_EQ(random.next(), 0x15780b2e0c2ec716u);
  EXPECT_EQ(random.next(), 0x6104d9866d113a7eu);
  EXPECT_NE(Random(1).next(), Random(2).next());
}

TEST(Random, below_is_fair_and_stays_below) {
  Random random(7);
  std::array<int, 10> hits{};
  for (int i = 0; i < 10'000; ++i) ++hits.at(random.below(10));
  for (const int count : hits) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, between_includes_both_ends_and_the_whole_range) {
  Random random(7);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.between(-1, 2));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-1, 0, 1, 2}));
  EXPECT_EQ(random.between(5, 5), 5);
  random.between(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

TEST(Random, unit_and_chance_stay_in_bounds) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.unit();
    EXPECT_GE(value, 0.0);
    EXPECT_LT(value, 1.0);
  }
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(1));
}

TEST(Random, serves_the_algorithms_of_the_standard_library) {
  std::vector<int> values = {1, 2, 3, 4, 5};
  Random random(1);
  std::ranges::shuffle(values, random);
  EXPECT_TRUE(std::ranges::is_permutation(values, std::vector{1, 2, 3, 4, 5}));
}

TEST(Random, a_fork_does_not_repeat_its_parent) {
  Random parent(9);
  Random child = parent.fork();
  EXPECT_NE(parent.next(), child.next());
}

}  // namespace
}  // namespace tutti
