// abort_test.cpp: aborts, rejected calls, closings and probes reach their addressees, and all report the same cause.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simulated_world.hpp"

namespace tutti::control {
namespace {

using namespace std::chrono_literals;
using messages::Fault;

Cause cause(Cause::Kind kind, std::vector<int> culprits, std::string text) {
  return {.kind = kind, .culprits = std::move(culprits), .sequence = 3, .text = std::move(text)};
}

TEST(Abort, reaches_every_rank_with_its_cause_within_a_tenth_of_a_second) {
  for (const int size : {1, 2, 5, 16, 33}) {
    SimulatedWorld world({.size = size});
    const Cause told = cause(Cause::Kind::mismatch, {0}, "rank 0 called reduce, rank 1 called broadcast");
    world.network(size - 1).abort(77, 4, told);
    world.run_for(100ms);
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(world[rank].aborts.size(), 1u) << "rank " << rank << " of " << size;
      EXPECT_EQ(world[rank].aborts[0], std::pair(std::uint64_t{77}, told));
    }
  }
}

TEST(Abort, with_several_causes_at_once_ends_with_the_same_one_everywhere) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const int size = static_cast<int>(random.between(2, 16));
    SimulatedWorld world({.size = size, .seed = seed});
    for (int rank = 0; rank < size; ++rank) {
      const auto kind = static_cast<Cause::Kind>(random.below(cause_kind_count));
      const int culprits = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
      const Duration when(random.between(0, 80'000'000));
      world.cluster.at(when, [&world, rank, kind, culprits] {
        world.network(rank).abort(5, 0, cause(kind, {culprits}, "told by rank " + std::to_string(rank)));
        world.cluster.wake(rank);
      });
    }
    if (random.chance(0.5)) {  // late messages to some rank
      const int late = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
      world.cluster.inject(
          {.kind = Fault::Kind::delay_rank, .a = late, .duration = Duration(random.between(0, 80'000'000))});
    }
    world.run_for(1s);
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(world[rank].aborts.size(), 1u) << "seed " << seed << ", rank " << rank;
      EXPECT_EQ(world[rank].aborts[0], world[0].aborts[0]) << "seed " << seed << ", rank " << rank;
    }
  }
}

TEST(Abort, prefers_the_cause_that_explains_the_others) {
  SimulatedWorld world({.size = 4});
  world.network(1).abort(5, 0, cause(Cause::Kind::timeout, {3}, "waited for rank 3"));
  world.network(2).abort(5, 0, cause(Cause::Kind::mismatch, {2, 3}, "ranks 2 and 3 disagree"));
  world.run_for(1s);
  EXPECT_EQ(world[0].aborts.at(0).second.kind, Cause::Kind::mismatch);
}

TEST(Abort, works_while_a_rank_dies_the_decider_too) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const int size = static_cast<int>(random.between(3, 16));
    const int victim = random.chance(0.5) ? 0 : static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    const int origin = (victim + 1) % size;
    SimulatedWorld world({.size = size, .seed = seed});
    world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = victim, .at = Duration(random.between(0, 60'000'000))});
    world.cluster.at(20ms, [&] {
      world.network(origin).abort(9, 1, cause(Cause::Kind::timeout, {victim}, "timed out"));
      world.cluster.wake(origin);
    });
    world.run_for(1s);
    for (int rank = 0; rank < size; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(world[rank].aborts.size(), 1u) << "seed " << seed << ", rank " << rank;
      EXPECT_EQ(world[rank].losses.size(), 1u) << "seed " << seed << ", rank " << rank;
    }
  }
}

TEST(Abort, after_a_loss_noticed_at_the_same_time_comes_second_everywhere) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimulatedWorld world({.size = 8, .seed = seed});
    world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = 3, .at = 20ms});
    world.cluster.at(25ms, [&] {
      world.network(6).abort(9, 1, cause(Cause::Kind::timeout, {3}, "timed out"));
      world.cluster.wake(6);
    });
    ASSERT_TRUE(world.cluster.run_until([&] { return !world[7].aborts.empty(); }, 1s));
    EXPECT_EQ(world[7].losses.size(), 1u) << "seed " << seed;
  }
}

TEST(Abort, of_a_group_that_is_broken_already_is_not_told_again) {
  SimulatedWorld world({.size = 3});
  world.network(0).abort(5, 0, cause(Cause::Kind::aborted, {0}, "first"));
  world.run_for(1s);
  world.network(1).abort(5, 0, cause(Cause::Kind::mismatch, {1}, "second"));
  world.network(1).abort(5, 1, cause(Cause::Kind::mismatch, {1}, "another epoch"));
  world.run_for(1s);
  EXPECT_EQ(world[2].aborts.size(), 2u);
  EXPECT_EQ(world[2].aborts[0].second.text, "first");
}

TEST(Abort, of_a_rank_given_up_by_the_others_is_its_own_affair) {
  SimulatedWorld world({.size = 3});
  world.cluster.inject({.kind = Fault::Kind::cut_link, .a = 1, .b = 2, .at = 1ms});
  world.run_for(1s);
  ASSERT_TRUE(world[2].was_told_of_the_loss_of(2));
  world.network(2).abort(5, 0, cause(Cause::Kind::aborted, {2}, "given up"));
  world.run_for(1s);
  EXPECT_EQ(world[2].aborts.size(), 1u);
  EXPECT_TRUE(world[0].aborts.empty());
}

TEST(News, refusals_and_goodbyes_reach_everybody) {
  SimulatedWorld world({.size = 9});
  world.network(4).refuse(11, 2, 41, "rank 4 passed float32 where int64 is needed");
  const Position position{.group = 12, .epoch = 0, .calls = 7, .history = 99};
  world.network(8).announce_leave(std::span(&position, 1));
  world.run_for(10ms);
  EXPECT_TRUE(world.network(8).may_leave());
  for (int rank = 0; rank < 9; ++rank) {
    ASSERT_EQ(world[rank].refusals.size(), 1u);
    EXPECT_EQ(world[rank].refusals[0].rank, 4);
    EXPECT_EQ(world[rank].refusals[0].sequence, 41u);
    if (rank == 8) continue;
    EXPECT_THAT(world[rank].positions, testing::ElementsAre(std::pair(8, position)));
  }
}

TEST(Floods, reach_all_living_ranks_while_many_die) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const int size = 16;
    SimulatedWorld world({.size = size, .seed = seed});
    std::vector<int> order(size);
    for (int i = 0; i < size; ++i) order[std::size_t(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (int i = 0; i < 6; ++i) {
      world.cluster.inject(
          {.kind = Fault::Kind::kill_rank, .a = order[std::size_t(i)], .at = Duration(random.between(0, 10'000'000))});
    }
    const int speaker = order[6];
    world.cluster.at(5ms, [&] {
      world.network(speaker).refuse(1, 0, 1, "no");
      world.cluster.wake(speaker);
    });
    world.run_for(5s);
    for (int i = 6; i < size; ++i) {
      const int rank = order[std::size_t(i)];
      EXPECT_EQ(world[rank].refusals.size(), 1u) << "seed " << seed << ", rank " << rank;
      EXPECT_EQ(world[rank].losses.size(), 6u) << "seed " << seed << ", rank " << rank;
    }
  }
}

TEST(Probes, are_answered_by_every_rank_for_every_rank) {
  for (const int size : {1, 2, 7, 33}) {
    SimulatedWorld world({.size = size});
    const std::vector<std::byte> question(17);
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) world.network(from).probe(to, question);
    }
    world.run_for(100ms);
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(world[rank].answers.size(), std::size_t(size)) << "of " << size;
  }
}

TEST(Probes, find_a_way_around_ranks_that_are_gone) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const int size = 16;
    Random random(seed);
    SimulatedWorld world({.size = size, .seed = seed});
    std::set<int> dead;
    while (dead.size() < 4) dead.insert(static_cast<int>(random.below(size)));
    for (const int victim : dead) world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = victim, .at = 1ms});
    world.run_for(2s);
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        if (!dead.contains(from) && !dead.contains(to)) world.network(from).probe(to, {});
      }
    }
    world.run_for(1s);
    for (int rank = 0; rank < size; ++rank) {
      if (dead.contains(rank)) continue;
      EXPECT_EQ(world[rank].answers.size(), 12u) << "seed " << seed << ", rank " << rank;
    }
  }
}

TEST(Control, replays_exactly) {
  const auto history = [](std::uint64_t seed) {
    SimulatedWorld world({.size = 7, .seed = seed});
    Random random(seed);
    world.cluster.inject(messages::draw_fault(random, 7, 1s, 6s));
    world.run_for(10s);
    return world.cluster.trace();
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(history(seed), history(seed));
  EXPECT_NE(history(1), history(2));
}

}  // namespace
}  // namespace tutti::control
