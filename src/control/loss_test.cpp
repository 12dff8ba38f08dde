// loss_test.cpp: after one fault every living rank names the same rank, over many seeds.
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/links.hpp"
#include "tests/support/simulated_world.hpp"

namespace tutti::control {
namespace {

using namespace std::chrono_literals;
using messages::Fault;
using testing::HasSubstr;

// The lost ranks that all running ranks name; nothing if they do not agree.
std::optional<std::vector<std::pair<int, Cause>>> agreed(SimulatedWorld& world, const std::set<int>& silent = {}) {
  std::optional<std::vector<std::pair<int, Cause>>> all;
  for (int rank = 0; rank < world.cluster.size(); ++rank) {
    if (silent.contains(rank)) continue;
    if (!all) all = world[rank].losses;
    if (*all != world[rank].losses) return {};
  }
  return all;
}

class LossOfSeed : public testing::TestWithParam<int> {
 protected:
  static constexpr int seeds_per_size = 20;
};
INSTANTIATE_TEST_SUITE_P(ranks, LossOfSeed, testing::Range(2, 17));

TEST_P(LossOfSeed, a_killed_rank_is_named_by_all_others_within_a_tenth_of_a_second) {
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    const int size = GetParam();
    Random random(seed);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    SimulatedWorld world({.size = size, .seed = seed});
    world.cluster.inject(
        {.kind = Fault::Kind::kill_rank, .a = victim, .at = Duration(random.between(0, 3'000'000'000))});
    world.run_for(3s + 100ms);
    const auto losses = agreed(world, {victim});
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    ASSERT_EQ(losses->size(), 1u) << "seed " << seed;
    EXPECT_EQ(losses->front().first, victim) << "seed " << seed;
    EXPECT_THAT(losses->front().second.text, HasSubstr(fmt::format("rank {} is lost", victim)));
  }
}

TEST_P(LossOfSeed, all_name_the_end_that_the_launcher_saw_however_late_its_word_comes) {
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    const int size = GetParam();
    Random random(seed);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    ControlOptions options;
    options.verdicts.launcher_word = 400ms;
    SimulatedWorld world({.size = size, .seed = seed}, options);
    world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = victim, .at = 1s});
    world.run_for(1s);
    for (int rank = 0; rank < size; ++rank) {  // each hears it at a time of its own
      world.run_for(Duration(random.between(0, 300'000'000 / size)));
      if (rank != victim) world.network(rank).process_ended(victim, "its process 17 was killed by signal 9");
    }
    world.run_for(100ms);
    const auto losses = agreed(world, {victim});
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    ASSERT_EQ(losses->size(), 1u) << "seed " << seed;
    EXPECT_EQ(losses->front().second.text,
              fmt::format("rank {} is lost: its process 17 was killed by signal 9", victim))
        << "seed " << seed;
    for (int rank = 0; rank < size; ++rank)
      EXPECT_TRUE(rank == victim || world.network(rank).loss_of(victim) == Control::Loss::ended);
  }
}

TEST(Loss, without_a_word_of_the_launcher_the_link_that_broke_is_named) {
  ControlOptions options;
  options.verdicts.launcher_word = 400ms;
  SimulatedWorld world({.size = 4, .seed = 1}, options);
  world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = 2, .at = 1s});
  world.run_for(1s + 300ms);
  EXPECT_TRUE(world[0].losses.empty()) << "the launcher may still say how";
  world.run_for(300ms);
  const auto losses = agreed(world, {2});
  ASSERT_TRUE(losses.has_value());
  ASSERT_EQ(losses->size(), 1u);
}

TEST(Loss, the_launchers_word_of_a_rank_that_said_goodbye_is_no_loss) {
  SimulatedWorld world({.size = 5, .seed = 3});
  world.run_for(10ms);
  world.network(1).announce_leave({});
  world.run_for(100ms);
  for (const int rank : {0, 2, 3, 4}) world.network(rank).process_ended(1, "its process 17 exited with status 3");
  world.run_for(200ms);
  for (const int rank : {0, 2, 3, 4}) EXPECT_TRUE(world[rank].losses.empty()) << rank;
}

TEST_P(LossOfSeed, a_cut_link_costs_the_higher_rank_of_the_two_and_it_knows) {
  const int size = GetParam();
  if (size == 2) return;  // nobody can tell two ranks apart whose only link is cut
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    Random random(seed);
    SimulatedWorld world({.size = size, .seed = seed});
    const int a = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    const std::set<int> wanted = wanted_links(a, size, {});
    const std::vector<int> adjacent_ranks(wanted.begin(), wanted.end());
    const int b = adjacent_ranks[random.below(adjacent_ranks.size())];
    const auto kind = random.chance(0.5) ? Fault::Kind::cut_link : Fault::Kind::cut_one_way;
    world.cluster.inject({.kind = kind, .a = a, .b = b, .at = Duration(random.between(0, 1'000'000'000))});
    world.run_for(10s);
    const auto losses = agreed(world);
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    ASSERT_EQ(losses->size(), 1u) << "seed " << seed;
    EXPECT_EQ(losses->front().first, std::max(a, b)) << "seed " << seed;
    EXPECT_THAT(losses->front().second.text,
                HasSubstr(fmt::format("the link between ranks {} and {} is cut", std::min(a, b), std::max(a, b))));
  }
}

TEST_P(LossOfSeed, a_rank_silent_for_longer_than_the_limit_is_named_and_one_that_comes_back_sooner_is_not) {
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    const int size = GetParam();
    Random random(seed);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    const Duration stall = random.chance(0.5) ? Duration(random.between(0, 3'900'000'000)) : Duration::max();
    SimulatedWorld world({.size = size, .seed = seed});
    world.cluster.inject({.kind = Fault::Kind::stall_rank, .a = victim, .at = 2s, .duration = stall});
    world.run_for(12s);
    const auto losses = agreed(world, {victim});
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    if (stall != Duration::max()) {
      EXPECT_TRUE(losses->empty()) << "seed " << seed;
      continue;
    }
    ASSERT_EQ(losses->size(), 1u) << "seed " << seed;
    EXPECT_EQ(losses->front().first, victim) << "seed " << seed;
    EXPECT_THAT(losses->front().second.text, HasSubstr("nothing was heard of it for 5"));
  }
}

TEST_P(LossOfSeed, a_rank_that_wakes_up_around_the_limit_is_named_by_all_or_none) {
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    const int size = GetParam();
    Random random(seed);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    SimulatedWorld world({.size = size, .seed = seed});
    const Duration stall(random.between(3'800'000'000, 6'000'000'000));
    world.cluster.inject({.kind = Fault::Kind::stall_rank, .a = victim, .at = 2s, .duration = stall});
    world.run_for(20s);
    const auto losses = agreed(world);
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    ASSERT_LE(losses->size(), 1u) << "seed " << seed;
    if (!losses->empty()) {
      EXPECT_EQ(losses->front().first, victim) << "seed " << seed << ": " << losses->front().second.text;
    }
  }
}

TEST_P(LossOfSeed, slow_ranks_and_late_messages_cost_nobody) {
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    const int size = GetParam();
    Random random(seed);
    SimulatedWorld world({.size = size, .seed = seed});
    const auto kind = random.chance(0.5) ? Fault::Kind::slow_rank : Fault::Kind::delay_rank;
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    world.cluster.inject({.kind = kind, .a = victim, .duration = Duration(random.between(0, 200'000'000))});
    world.run_for(10s);
    const auto losses = agreed(world);
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    EXPECT_TRUE(losses->empty()) << "seed " << seed;
  }
}

TEST_P(LossOfSeed, two_killed_ranks_are_both_named_by_all_others) {
  const int size = GetParam();
  if (size < 4) return;
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {
    Random random(seed);
    const int first = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    const int second = (first + 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(size) - 1))) % size;
    SimulatedWorld world({.size = size, .seed = seed});
    world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = first, .at = 1s});
    world.cluster.inject(
        {.kind = Fault::Kind::kill_rank, .a = second, .at = 1s + Duration(random.between(0, 100'000'000))});
    world.run_for(20s);
    for (int rank = 0; rank < size; ++rank) {
      if (rank == first || rank == second) continue;
      std::set<int> named;
      for (const auto& [lost, cause] : world[rank].losses) named.insert(lost);
      EXPECT_THAT(named, testing::UnorderedElementsAre(first, second)) << "seed " << seed << ", rank " << rank;
    }
  }
}

TEST_P(LossOfSeed, a_rank_that_is_slow_to_answer_does_not_split_the_others) {
  const int size = GetParam();
  if (size < 3) return;
  for (std::uint64_t seed = 1; seed <= seeds_per_size; ++seed) {  // a cut link, and one end of it hears everything late
    Random random(seed);
    SimulatedWorld world({.size = size, .seed = seed});
    const int a = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(size) - 1));
    const std::set<int> wanted = wanted_links(a, size, {});
    const std::vector<int> adjacent_ranks(wanted.begin(), wanted.end());
    const int b = adjacent_ranks[random.below(adjacent_ranks.size())];
    world.cluster.inject(
        {.kind = Fault::Kind::delay_rank, .a = a, .duration = Duration(random.between(0, 60'000'000))});
    world.cluster.inject({.kind = Fault::Kind::cut_link, .a = a, .b = b, .at = 1s});
    world.run_for(10s);
    const auto losses = agreed(world);
    ASSERT_TRUE(losses.has_value()) << "seed " << seed;
    ASSERT_EQ(losses->size(), 1u) << "seed " << seed;
    EXPECT_TRUE(losses->front().first == a || losses->front().first == b) << "seed " << seed;
  }
}

TEST(LossOfTwo, each_names_the_other_when_their_only_link_is_cut) {
  SimulatedWorld world({.size = 2});
  world.cluster.inject({.kind = Fault::Kind::cut_link, .a = 0, .b = 1, .at = 10ms});
  world.run_for(1s);
  ASSERT_EQ(world[0].losses.size(), 1u);
  ASSERT_EQ(world[1].losses.size(), 1u);
  EXPECT_EQ(world[0].losses[0].first, 1);
  EXPECT_EQ(world[1].losses[0].first, 0);
}

TEST(Loss, of_an_isolated_rank_is_named_by_the_others_and_it_gives_up_all_of_them) {
  SimulatedWorld world({.size = 8});
  for (int peer = 0; peer < 8; ++peer) {
    if (peer != 5) world.cluster.inject({.kind = Fault::Kind::cut_link, .a = 5, .b = peer, .at = 1s});
  }
  world.run_for(20s);
  const auto losses = agreed(world, {5});
  ASSERT_TRUE(losses.has_value());
  ASSERT_EQ(losses->size(), 1u);
  EXPECT_EQ(losses->front().first, 5);
  EXPECT_EQ(world[5].losses.size(), 7u);
}

TEST(Loss, after_a_goodbye_is_none) {
  SimulatedWorld world({.size = 6});
  world.run_for(10ms);
  world.network(2).leave();
  world.cluster.endpoint(2).close(TimePoint::max());
  world.run_for(10s);
  for (int rank = 0; rank < 6; ++rank) {
    if (rank == 2) continue;
    EXPECT_TRUE(world[rank].losses.empty());
    EXPECT_THAT(world[rank].left, testing::ElementsAre(2));
    EXPECT_TRUE(world.network(rank).has_left(2));
    EXPECT_FALSE(world[rank].was_told_of_the_loss_of(2));
  }
}

TEST(Loss, is_not_told_when_all_leave_in_any_order) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimulatedWorld world({.size = 9, .seed = seed});
    Random random(seed);
    for (int rank = 0; rank < 9; ++rank) {
      world.cluster.at(Duration(random.between(0, 3'000'000)), [&world, rank] {
        world.network(rank).leave();
        world.cluster.endpoint(rank).close(TimePoint::max());
      });
    }
    world.run_for(10s);
    for (int rank = 0; rank < 9; ++rank)
      EXPECT_TRUE(world[rank].losses.empty()) << "seed " << seed << ", rank " << rank;
  }
}

TEST(Leaving, hands_every_goodbye_to_the_ranks_that_stay_however_many_leave_at_once) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const int size = 2 + static_cast<int>(seed % 15);
    SimulatedWorld world({.size = size, .seed = seed});
    Random random(seed);
    LeavingRanks ranks(world);
    for (int rank = 0; rank < size; ++rank)
      world.cluster.at(Duration(random.between(0, 3'000'000)), [&ranks, rank] { ranks.announce(rank); });
    world.run_for(4s);
    ASSERT_EQ(ranks.gone().size(), static_cast<std::size_t>(size)) << "seed " << seed << ": a rank waits for ever";
    const int last = ranks.gone().back();
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_TRUE(world[rank].losses.empty()) << "seed " << seed << ", rank " << rank;
      if (rank == last) continue;
      EXPECT_TRUE(world.network(last).has_left(rank))
          << "seed " << seed << ": rank " << last << " of " << size << " has not heard of rank " << rank;
    }
  }
}

}  // namespace
}  // namespace tutti::control
