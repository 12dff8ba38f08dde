// reuse_distance_test.cpp: bytes since the last touch, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/reuse_distance.hpp"

#include <gtest/gtest.h>

namespace tutti::sim {
namespace {

constexpr std::int64_t never = 1000;

TEST(ReuseDistance, CountsTheBytesSinceTheLastUseAndTheRangeItself) {
  ReuseDistance reuse;
  EXPECT_EQ(reuse.touch({0, 0, 10}, never), never);
  EXPECT_EQ(reuse.touch({0, 0, 10}, never), 10);
  EXPECT_EQ(reuse.touch({0, 10, 30}, never), never);
  EXPECT_EQ(reuse.touch({0, 0, 10}, never), 40);
}

TEST(ReuseDistance, TellsMemoriesApart) {
  ReuseDistance reuse;
  EXPECT_EQ(reuse.touch({0, 0, 10}, never), never);
  EXPECT_EQ(reuse.touch({1, 0, 10}, never), never);
  EXPECT_EQ(reuse.touch({0, 0, 10}, never), 20);
}

TEST(ReuseDistance, APartOfARangeRemembersAndTheOthersAreLeftAlone) {
  ReuseDistance reuse;
  reuse.touch({0, 0, 100}, never);
  EXPECT_EQ(reuse.touch({0, 40, 20}, never), 20);
  EXPECT_EQ(reuse.touch({0, 0, 40}, never), 20 + 40);
  EXPECT_EQ(reuse.touch({0, 60, 40}, never), 20 + 40 + 40);
  EXPECT_EQ(reuse.touch({0, 40, 20}, never), 40 + 40 + 20);
}

TEST(ReuseDistance, ARangeOfSeveralPastsIsTheirAverage) {
  ReuseDistance reuse;
  reuse.touch({0, 0, 10}, never);
  reuse.touch({1, 0, 100}, never);
  reuse.touch({0, 10, 10}, never);
  // A quarter 110 bytes ago, a quarter just now, the rest never.
  EXPECT_EQ(reuse.touch({0, 0, 40}, never), (10 * (110 + 40) + 10 * 40 + 20 * never) / 40);
}

TEST(ReuseDistance, AnEmptyRangeUsesNothing) {
  ReuseDistance reuse;
  EXPECT_EQ(reuse.touch({0, 5, 0}, never), 0);
  EXPECT_EQ(reuse.touch({0, 0, 10}, never), never);
}

}  // namespace
}  // namespace tutti::sim
