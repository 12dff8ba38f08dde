// cores_test.cpp: who gets a core, when, where ranks share them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cores.hpp"

#include <gtest/gtest.h>

namespace tutti::sim {
namespace {

// 1 µs per message, hence 1 µs of looking around; 3 µs to hand a core over, 50 µs to wake one.
Cluster three_on_two() {
  Cluster cluster{.ranks = 3, .ranks_per_host = 3, .cores = 2};
  cluster.speed.overhead = 1e-6;
  cluster.turn = 3e-6;
  cluster.wake = 50e-6;
  return cluster;
}

constexpr double tiny = 1e-12;

class SharedCores : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(cores_.ask(0, 0));
    ASSERT_TRUE(cores_.ask(1, 0));
    ASSERT_FALSE(cores_.ask(2, 0)) << "rank 2 shares the core of rank 0";
  }
  Cluster cluster_ = three_on_two();
  Cores cores_{cluster_, 3};
};

TEST_F(SharedCores, WhoComesBackPaysForTheTurnAndWhoEntersDoesNot) {
  const auto second = cores_.release(0, 10e-6);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->rank, 2u);
  EXPECT_NEAR(second->begin, 10e-6, tiny);
  EXPECT_FALSE(cores_.ask(0, 12e-6)) << "awake, so it stays with its core";
  const auto first = cores_.release(2, 20e-6);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rank, 0u);
  EXPECT_NEAR(first->begin, 23e-6, tiny);
}

TEST_F(SharedCores, AnIdleCoreTakesOverWhoWaitsForAnotherForLong) {
  EXPECT_FALSE(cores_.release(1, 5e-6));
  ASSERT_TRUE(cores_.steals_at(1));
  EXPECT_NEAR(*cores_.steals_at(1), 56e-6, tiny);  // 1 µs awake, and as long as it takes to wake it
  EXPECT_FALSE(cores_.steal(1, 6e-6));
  const auto taken = cores_.steal(1, *cores_.steals_at(1));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->rank, 2u);
  EXPECT_FALSE(cores_.ask(1, 60e-6)) << "both cores are in use now";
}

TEST_F(SharedCores, ACoreThatIsUsedAgainTakesNobodyOver) {
  EXPECT_FALSE(cores_.release(1, 5e-6));
  const double steals_at = *cores_.steals_at(1);
  const auto again = cores_.ask(1, 5.5e-6);
  ASSERT_TRUE(again);
  EXPECT_NEAR(again->begin, 5.5e-6, tiny) << "it was still looking around";
  EXPECT_FALSE(cores_.steal(1, steals_at));
}

TEST_F(SharedCores, AnIdleCoreHasToBeWokenAndServesWhoSleptElsewhere) {
  EXPECT_TRUE(cores_.release(0, 5e-6));  // to rank 2
  EXPECT_FALSE(cores_.release(1, 5e-6));
  const auto moved = cores_.ask(0, 100e-6);  // long asleep, and rank 2 has its core
  ASSERT_TRUE(moved);
  EXPECT_NEAR(moved->begin, 150e-6, tiny);
  EXPECT_FALSE(cores_.ask(1, 100e-6)) << "rank 0 has that core now";
}

TEST(Cores, WithACoreForEachRankNobodyWaits) {
  Cluster cluster = three_on_two();
  cluster.cores = 3;
  Cores cores(cluster, 3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_NEAR(cores.ask(rank, 7e-6)->begin, 7e-6, tiny);
  EXPECT_FALSE(cores.release(0, 8e-6));
  EXPECT_FALSE(cores.steals_at(0));
}

}  // namespace
}  // namespace tutti::sim
