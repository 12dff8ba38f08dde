// creation_test.cpp: members make groups, in any order, and learn why when they cannot.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

#include "tests/support/simulated_world.hpp"

namespace tutti::control {
namespace {

using namespace std::chrono_literals;
using messages::Fault;
using State = Creation::State;
using Handle = std::shared_ptr<const Creation>;

std::vector<std::byte> blob(int value) { return {std::byte(value)}; }

Handle start(SimulatedWorld& world, int rank, std::vector<int> members, Duration timeout = 10s, std::uint64_t key = 0) {
  world.cluster.wake(rank);
  return world.network(rank).create({.members = std::move(members),
                                     .key = key,
                                     .blob = blob(rank),
                                     .deadline = deadline_after(world.cluster.clock().now(), timeout)});
}

TEST(Creation, gives_all_members_one_id_and_the_blob_of_the_lowest) {
  for (const int size : {1, 2, 3, 8, 33}) {
    SimulatedWorld world({.size = size});
    std::vector<int> members;
    for (int rank = size - 1; rank >= 0; --rank) members.push_back(rank);
    std::vector<Handle> handles;
    for (const int rank : members) handles.push_back(start(world, rank, members));
    world.run_for(10ms);
    for (const Handle& handle : handles) {
      ASSERT_EQ(handle->state, State::ready) << "of " << size;
      EXPECT_NE(handle->group, 0u);
      EXPECT_EQ(handle->group, handles[0]->group);
      EXPECT_EQ(handle->blob, blob(0));
    }
  }
}

TEST(Creation, needs_only_members_and_waits_for_the_last_of_them) {
  SimulatedWorld world({.size = 8});
  const Handle early = start(world, 2, {5, 2, 7});
  const Handle second = start(world, 7, {5, 2, 7});
  world.run_for(3s);
  EXPECT_EQ(early->state, State::pending);
  const Handle last = start(world, 5, {5, 2, 7});
  world.run_for(1s);
  EXPECT_EQ(early->state, State::ready);
  EXPECT_EQ(last->group, early->group);
  EXPECT_EQ(second->group, early->group);
  EXPECT_EQ(last->blob, blob(2));
}

TEST(Creation, of_many_groups_in_different_orders_neither_blocks_nor_crosses) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const int size = static_cast<int>(random.between(2, 12));
    SimulatedWorld world({.size = size, .seed = seed, .jitter = 3.0});
    std::vector<std::vector<int>> lists;
    for (int i = 0; i < 12; ++i) {  // some of them alike: the k-th of the same list on all ranks
      std::vector<int> list;
      for (int rank = 0; rank < size; ++rank) {
        if (random.chance(0.6)) list.push_back(rank);
      }
      if (list.empty()) list.push_back(0);
      lists.push_back(i % 3 == 2 ? lists.back() : list);
    }
    std::vector<std::vector<Handle>> handles(lists.size());
    for (int rank = 0; rank < size; ++rank) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < lists.size(); ++i) {
        if (std::ranges::find(lists[i], rank) != lists[i].end()) order.push_back(i);
      }
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t at = 0; at < order.size(); ++at) {  // those with the same list in one order, as in a program
        for (std::size_t later = at + 1; later < order.size(); ++later) {
          if (lists[order[at]] == lists[order[later]] && order[later] < order[at]) std::swap(order[at], order[later]);
        }
      }
      for (const std::size_t i : order) {
        world.cluster.run_for(Duration(random.between(0, 50'000)));
        handles[i].push_back(start(world, rank, lists[i]));
      }
    }
    world.run_for(5s);
    std::set<std::uint64_t> ids;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      for (const Handle& handle : handles[i]) {
        ASSERT_EQ(handle->state, State::ready) << "seed " << seed << ", list " << i << ": " << handle->cause.text;
        EXPECT_EQ(handle->group, handles[i][0]->group) << "seed " << seed << ", list " << i;
      }
      EXPECT_TRUE(ids.insert(handles[i][0]->group).second) << "an id twice, seed " << seed;
    }
  }
}

TEST(Creation, with_another_key_is_another_group) {
  SimulatedWorld world({.size = 2});
  const Handle a0 = start(world, 0, {0, 1}, 10s, 1), b0 = start(world, 0, {0, 1}, 10s, 2);
  const Handle b1 = start(world, 1, {0, 1}, 10s, 2), a1 = start(world, 1, {0, 1}, 10s, 1);
  world.run_for(1s);
  EXPECT_EQ(a0->group, a1->group);
  EXPECT_EQ(b0->group, b1->group);
  EXPECT_NE(a0->group, b0->group);
}

TEST(Creation, that_some_do_not_join_times_out_for_all_with_the_same_words) {
  for (const Duration timeout : {Duration(100ms), Duration(2s)}) {
    SimulatedWorld world({.size = 6});
    std::vector<Handle> handles;
    for (const int rank : {1, 2, 4}) handles.push_back(start(world, rank, {1, 2, 3, 4, 5}, timeout));
    world.run_for(timeout + 50ms);
    for (const Handle& handle : handles) {
      ASSERT_EQ(handle->state, State::failed);
      EXPECT_EQ(handle->cause.kind, Cause::Kind::timeout);
      EXPECT_THAT(handle->cause.culprits, testing::ElementsAre(3, 5));
      EXPECT_THAT(handle->cause.text, testing::HasSubstr("ranks 3, 5 have not joined"));
    }
    const Handle late = start(world, 3, {1, 2, 3, 4, 5}, 10s);  // told at once, not after its own deadline
    world.run_for(50ms);
    EXPECT_EQ(late->state, State::failed);
    const Handle late_too = start(world, 5, {1, 2, 3, 4, 5}, 10s);
    world.run_for(50ms);
    EXPECT_EQ(late_too->state, State::failed);

    std::vector<Handle> again;  // and the counting is the same everywhere
    for (const int rank : {1, 2, 3, 4, 5}) again.push_back(start(world, rank, {1, 2, 3, 4, 5}));
    world.run_for(50ms);
    for (const Handle& handle : again) EXPECT_EQ(handle->state, State::ready);
  }
}

TEST(Creation, without_the_lowest_member_names_it) {
  SimulatedWorld world({.size = 3});
  const Handle one = start(world, 1, {0, 1, 2}, 1s);
  const Handle two = start(world, 2, {0, 1, 2}, 1s);
  world.run_for(2s);
  EXPECT_EQ(one->state, State::failed);
  EXPECT_THAT(one->cause.culprits, testing::ElementsAre(0));
  EXPECT_EQ(two->cause, one->cause);
}

TEST(Creation, with_lists_that_differ_is_a_mismatch_that_shows_both) {
  SimulatedWorld world({.size = 3});
  const Handle zero = start(world, 0, {0, 1, 2}, 1s);
  const Handle one = start(world, 1, {0, 1, 2}, 1s);
  const Handle two = start(world, 2, {0, 2}, 2s);
  world.run_for(3s);
  EXPECT_EQ(zero->state, State::failed);
  EXPECT_EQ(zero->cause.kind, Cause::Kind::mismatch);
  EXPECT_THAT(zero->cause.text, testing::HasSubstr("rank 2 is making another group, of 2 members: 0, 2"));
  EXPECT_EQ(one->cause, zero->cause);
  EXPECT_EQ(two->state, State::failed);
  EXPECT_THAT(two->cause.culprits, testing::ElementsAre(0));
}

TEST(Creation, that_loses_a_member_fails_for_all_at_once_and_later_ones_too) {
  for (const int victim : {0, 2, 3}) {
    SimulatedWorld world({.size = 4});
    std::vector<Handle> handles;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != victim) handles.push_back(start(world, rank, {0, 1, 2, 3}, 60s));
    }
    world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = victim, .at = 10ms});
    world.run_for(200ms);
    for (const Handle& handle : handles) {
      ASSERT_EQ(handle->state, State::failed) << "without rank " << victim;
      EXPECT_EQ(handle->cause.kind, Cause::Kind::lost);
      EXPECT_THAT(handle->cause.culprits, testing::ElementsAre(victim));
    }
    const int survivor = victim == 3 ? 2 : 3;
    EXPECT_EQ(start(world, survivor, {0, 1, 2, 3})->state, State::failed);
  }
}

TEST(Creation, survives_the_loss_of_a_rank_on_the_way) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    SimulatedWorld world({.size = 16, .seed = seed});
    const std::vector<int> members = {0, 5, 11, 14};
    std::vector<Handle> handles;
    const int victim = 1 + static_cast<int>(random.below(4));  // not a member
    world.cluster.inject({.kind = Fault::Kind::kill_rank, .a = victim, .at = Duration(random.between(0, 200'000))});
    for (const int rank : members) handles.push_back(start(world, rank, members));
    world.run_for(3s);
    for (const Handle& handle : handles) EXPECT_EQ(handle->state, State::ready) << "seed " << seed;
  }
}

Cause interrupted(int rank) {
  return {.kind = Cause::Kind::aborted,
          .culprits = {rank},
          .sequence = 0,
          .text = fmt::format("rank {} was interrupted", rank)};
}

TEST(Creation, that_a_member_is_interrupted_in_fails_on_all_and_the_next_one_is_made) {
  for (const int left : {0, 2}) {  // the lowest member makes the group
    SimulatedWorld world({.size = 3});
    std::vector<Handle> handles{start(world, left, {0, 1, 2}), start(world, 1, {0, 1, 2})};
    world.run_for(10ms);
    world.network(left).give_up(*handles[0], interrupted(left));
    world.run_for(10ms);
    handles.push_back(start(world, 2 - left, {0, 1, 2}));  // it comes late
    world.run_for(10ms);
    for (const Handle& handle : handles) {
      EXPECT_EQ(handle->state, State::failed);
      EXPECT_EQ(handle->cause, interrupted(left));
    }
    world.network(left).give_up(*handles[0], interrupted(left));  // it is over: nothing happens
    handles.clear();
    for (int rank = 0; rank < 3; ++rank) handles.push_back(start(world, rank, {0, 1, 2}));
    world.run_for(10ms);
    for (const Handle& handle : handles) ASSERT_EQ(handle->state, State::ready);
    world.network(left).give_up(*handles[static_cast<std::size_t>(left)], interrupted(left));  // made just now
    world.run_for(1s);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(world[rank].aborts.size(), 1u);
      EXPECT_EQ(world[rank].aborts[0], std::pair(handles[0]->group, interrupted(left)));
    }
  }
}

/// The lowest of two members, and what it sends to the other.
struct Leader {
  std::vector<RoutedBody> sent{};
  Creations creations{0,
                      Random(1),
                      200ms,
                      {.send = [this](int, RoutedBody body) { sent.push_back(std::move(body)); },
                       .abort_group = [](std::uint64_t, const Cause&) {},
                       .gone = [](int) -> const Cause* { return nullptr; }}};
  TimePoint now{};
  Handle handle = creations.start(now, {.members = {0, 1}});
  CreationName name{};
  explicit Leader(const CreationName& started) : name(started) {
    creations.on_join(1, {.name = name, .member_count = 2, .members = {0, 1}});
  }
};

/// The name of the first creation with these members, as the member itself says it.
CreationName name_of_first() {
  CreationName name;
  Creations member(1, Random(1), 200ms,
                   {.send = [&](int, RoutedBody body) { name = std::get<Join>(body).name; },
                    .abort_group = {},
                    .gone = [](int) -> const Cause* { return nullptr; }});
  (void)member.start(TimePoint{}, {.members = {0, 1}});
  return name;
}

TEST(Creation, that_a_member_has_not_confirmed_is_told_to_it_again_until_it_does) {
  Leader leader(name_of_first());
  ASSERT_EQ(leader.handle->state, State::ready);
  ASSERT_EQ(leader.sent.size(), 1u);
  leader.creations.poll(leader.now);
  EXPECT_TRUE(leader.creations.has_untaken());
  leader.creations.poll(leader.now += 2s);
  leader.creations.poll(leader.now += 2s);
  EXPECT_EQ(leader.sent.size(), 3u) << "the word, or the confirmation, may have been lost";
  leader.creations.on_taken(5, {leader.name});
  EXPECT_TRUE(leader.creations.has_untaken()) << "rank 5 is no member";
  leader.creations.on_taken(1, {leader.name});
  EXPECT_FALSE(leader.creations.has_untaken());
}

TEST(Creation, that_a_member_gave_up_when_it_was_made_holds_nobody_up) {
  Leader leader(name_of_first());
  leader.creations.on_gave_up(1, {leader.name, {}});
  EXPECT_FALSE(leader.creations.has_untaken());
}

TEST(Creation, that_was_taken_or_given_up_is_confirmed_as_often_as_it_is_told) {
  std::vector<RoutedBody> sent;
  Creations member(1, Random(1), 200ms,
                   {.send = [&](int, RoutedBody body) { sent.push_back(std::move(body)); },
                    .abort_group = {},
                    .gone = [](int) -> const Cause* { return nullptr; }});
  const Handle taken = member.start(TimePoint{}, {.members = {0, 1}, .key = 1});
  const CreationName first = std::get<Join>(sent[0]).name;
  for (int times = 0; times < 2; ++times) {
    member.on_made(0, {first, 77, {}});
    EXPECT_TRUE(std::holds_alternative<Taken>(sent.back()));
  }
  const Handle late = member.start(TimePoint{}, {.members = {0, 1}, .key = 2, .deadline = TimePoint(1s)});
  const CreationName second = std::get<Join>(sent.back()).name;
  member.poll(TimePoint(2s));
  EXPECT_EQ(late->state, State::failed);
  member.on_made(0, {second, 78, {}});
  EXPECT_TRUE(std::holds_alternative<GaveUp>(sent.back()));
}

TEST(Creation, of_an_impossible_list_is_refused_before_anything_is_sent) {
  SimulatedWorld world({.size = 4});
  for (const std::vector<int>& list : std::vector<std::vector<int>>{{}, {0, 4}, {0, -1}, {0, 1, 1}, {1, 2}}) {
    EXPECT_THROW(world.network(0).create({.members = list}), InvalidArgument);
  }
}

}  // namespace
}  // namespace tutti::control
