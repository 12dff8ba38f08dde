// survey_test.cpp: never do two parts of a group go on without each other, whatever is cut and killed, over many seeds.
// SPDX-License-Identifier: Apache-2.0
#include "group/survey.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/simulated_world.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using control::SimulatedWorld;
using messages::Fault;
using testing::ElementsAre;

TEST(Survey, MoreThanHalfGoOnAndOfTwoHalvesTheOneWithTheLowestRank) {
  EXPECT_TRUE(may_go_on({.survivors = {2, 3, 4}, .unconfirmed = {0, 1}}));
  EXPECT_FALSE(may_go_on({.survivors = {0, 1}, .unconfirmed = {2, 3, 4}}));
  EXPECT_TRUE(may_go_on({.survivors = {0, 3}, .unconfirmed = {1, 2}}));
  EXPECT_FALSE(may_go_on({.survivors = {1, 2}, .unconfirmed = {0, 3}}));
  EXPECT_TRUE(may_go_on({.survivors = {7}, .unconfirmed = {}})) << "the others are known to have ended";
  EXPECT_FALSE(may_go_on({.survivors = {}, .unconfirmed = {}}));
}

std::vector<int> everyone(int size) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Splits the ranks in two at a random moment, one link after the other; none but the links between the parts are cut.
struct Split {
  std::vector<int> part_of;  // per rank: 0 or 1

  Split(SimulatedWorld& world, int size, Random& random) : part_of(static_cast<std::size_t>(size)) {
    for (int& part : part_of) part = random.chance(0.5) ? 1 : 0;
    const Duration at(random.between(0, 1'000'000'000));
    for (int a = 0; a < size; ++a) {
      for (int b = a + 1; b < size; ++b) {
        if (part_of[static_cast<std::size_t>(a)] == part_of[static_cast<std::size_t>(b)]) continue;
        const Duration later(random.between(0, 20'000'000));
        world.cluster.inject({.kind = Fault::Kind::cut_link, .a = a, .b = b, .at = at + later});
      }
    }
  }
};

// The lists under which ranks may go on now.
std::vector<std::vector<int>> parts_that_may_go_on(SimulatedWorld& world, const std::vector<int>& dead) {
  std::vector<std::vector<int>> lists;
  const std::vector<int> members = everyone(world.cluster.size());
  for (const int rank : members) {
    if (std::ranges::find(dead, rank) != dead.end()) continue;
    const Survey found = survey(world.network(rank), members);
    if (std::ranges::find(found.survivors, rank) == found.survivors.end()) continue;  // it was given up, and knows
    if (found.is_settled && may_go_on(found) && std::ranges::find(lists, found.survivors) == lists.end())
      lists.push_back(found.survivors);
  }
  return lists;
}

bool are_disjoint(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::none_of(a, [&b](int rank) { return std::ranges::find(b, rank) != b.end(); });
}

class SurveyOf : public testing::TestWithParam<int> {
 protected:
  static constexpr int seeds = 20;
};
INSTANTIATE_TEST_SUITE_P(ranks, SurveyOf, testing::Values(2, 3, 4, 5, 8, 13));

TEST_P(SurveyOf, ASplitGroupNeverGoesOnAsTwo) {
  const int size = GetParam();
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    SimulatedWorld world({.size = size, .seed = seed});
    const Split split(world, size, random);
    std::vector<int> dead;
    if (random.chance(0.3)) {
      dead.push_back(static_cast<int>(random.below(static_cast<std::uint64_t>(size))));
      world.cluster.inject(
          {.kind = Fault::Kind::kill_rank, .a = dead.front(), .at = Duration(random.between(0, 2'000'000'000))});
    }
    for (Duration passed{}; passed < 20s; passed += 500ms) {
      world.run_for(500ms);
      const auto lists = parts_that_may_go_on(world, dead);
      for (std::size_t i = 0; i < lists.size(); ++i) {
        for (std::size_t j = i + 1; j < lists.size(); ++j) {
          ASSERT_FALSE(are_disjoint(lists[i], lists[j]))
              << "seed " << seed << ": " << testing::PrintToString(lists) << " may go on after "
              << testing::PrintToString(passed.count());
        }
      }
    }
  }
}

// What the launcher knows counts: two that are left of eight go on, because six have ended for certain.
TEST(Survey, AMinorityGoesOnIfTheLauncherSaysThatTheOthersHaveEnded) {
  SimulatedWorld world({.size = 8, .seed = 4});
  for (int rank = 2; rank < 8; ++rank) world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = rank, .at = 100ms});
  world.run_for(110ms);
  for (int rank = 2; rank < 8; ++rank) {
    for (const int survivor : {0, 1}) world.network(survivor).process_ended(rank, "its process 17 was killed");
  }
  world.run_for(20s);
  const Survey found = survey(world.network(0), everyone(8));
  EXPECT_THAT(found.survivors, ElementsAre(0, 1));
  EXPECT_TRUE(found.unconfirmed.empty());
  EXPECT_TRUE(may_go_on(found));
}

// A rank that was stopped, given up, and wakes: the others have not counted it since, and it knows.
TEST(Survey, ARankThatComesBackIsFenced) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedWorld world({.size = 4, .seed = seed});
    for (const int other : {0, 1, 3})
      world.cluster.inject({.kind = Fault::Kind::cut_link, .a = other, .b = 2, .at = 100ms});
    world.run_for(20s);
    const Survey majority = survey(world.network(0), everyone(4));
    ASSERT_THAT(majority.survivors, ElementsAre(0, 1, 3)) << "seed " << seed;
    EXPECT_TRUE(may_go_on(majority));
    const Survey alone = survey(world.network(2), everyone(4));
    const bool knows = std::ranges::find(alone.survivors, 2) == alone.survivors.end();
    EXPECT_TRUE(knows || !may_go_on(alone)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tutti
