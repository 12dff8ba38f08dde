// job_store_test.cpp: the job's store: each request takes effect once, and no wait outlives the keeper.
// SPDX-License-Identifier: Apache-2.0
#include "control/job_store.hpp"

#include <gtest/gtest.h>

#include "tests/support/simulated_world.hpp"

namespace tutti::control {
namespace {

using namespace std::chrono_literals;
using store::Reply;
using store::Request;
using Kind = Request::Kind;
using Handle = std::shared_ptr<const JobStore::Asked>;

Handle ask(SimulatedWorld& world, int rank, Request request) {
  world.cluster.wake(rank);
  return world.network(rank).store().ask(world.cluster.clock().now(), std::move(request));
}

std::string value_of(const Handle& asked) {
  EXPECT_TRUE(asked->reply.has_value() && asked->reply->kind == Reply::Kind::value);
  return asked->reply.has_value() && asked->reply->value ? *asked->reply->value : "";
}

TEST(JobStoreOf, ranks_reads_what_any_rank_has_set) {
  for (const int size : {1, 2, 7, 33}) {
    SimulatedWorld world({.size = size});
    for (int rank = 0; rank < size; ++rank) {
      const auto set = ask(world, rank, {.kind = Kind::set, .key = "k", .value = std::to_string(rank)});
      world.run_for(100ms);
      ASSERT_TRUE(set->reply.has_value()) << rank << " of " << size;
      const auto got = ask(world, size - 1 - rank, {.kind = Kind::get, .key = "k"});
      world.run_for(100ms);
      EXPECT_EQ(value_of(got), std::to_string(rank));
    }
  }
}

TEST(JobStoreOf, a_waiting_rank_answers_when_the_key_comes_however_late) {
  SimulatedWorld world({.size = 5});
  const auto got = ask(world, 3, {.kind = Kind::get, .key = "late"});
  const auto waited = ask(world, 4, {.kind = Kind::wait, .key = "late"});
  const auto own = ask(world, 2, {.kind = Kind::get, .key = "late"});
  world.run_for(5s);
  EXPECT_FALSE(got->has_ended());
  (void)ask(world, 2, {.kind = Kind::set, .key = "late", .value = "v"});
  world.run_for(100ms);
  EXPECT_EQ(value_of(got), "v");
  EXPECT_EQ(value_of(own), "v");
  EXPECT_TRUE(waited->has_ended());
}

// A rank that forwards dies with the messages that it has not passed on: requests are repeated, and added once.
TEST(JobStoreOf, a_job_whose_ranks_die_adds_each_amount_once) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    constexpr int size = 9;
    SimulatedWorld world({.size = size, .seed = seed});
    world.run_for(50ms);
    std::vector<Handle> asked;
    for (int round = 0; round < 3; ++round) {
      for (const int rank : {0, 5, 6, 7})
        asked.push_back(ask(world, rank, {.kind = Kind::add, .key = "n", .amount = 1}));
      world.cluster.run_for(std::chrono::microseconds(seed * 7 % 150));
      world.cluster.inject({.kind = messages::Fault::Kind::kill_rank, .a = 1 + round, .at = world.cluster.elapsed()});
      world.run_for(10s);
    }
    const auto total = ask(world, 8, {.kind = Kind::add, .key = "n", .amount = 0});
    world.run_for(1s);
    for (const Handle& each : asked) EXPECT_TRUE(each->reply.has_value()) << "seed " << seed;
    ASSERT_TRUE(total->reply.has_value()) << "seed " << seed;
    EXPECT_EQ(total->reply->number, 12) << "seed " << seed;
  }
}

TEST(JobStoreOf, a_rank_that_gives_up_forgets_the_wait_and_uses_its_slot_again) {
  SimulatedWorld world({.size = 2});
  const auto never = ask(world, 1, {.kind = Kind::get, .key = "never"});
  world.run_for(1s);
  world.network(1).store().give_up(*never);
  for (int i = 0; i < 100; ++i) {
    const auto set = ask(world, 1, {.kind = Kind::set, .key = "never", .value = std::to_string(i)});
    world.run_for(10ms);
    ASSERT_TRUE(set->reply.has_value());
  }
  EXPECT_FALSE(never->has_ended());
  const auto got = ask(world, 0, {.kind = Kind::get, .key = "never"});
  world.run_for(10ms);
  EXPECT_EQ(value_of(got), "99");
}

TEST(JobStoreOf, a_job_without_its_keeper_ends_every_wait) {
  for (const bool leaves : {true, false}) {
    SimulatedWorld world({.size = 4});
    world.run_for(50ms);
    const auto before = ask(world, 2, {.kind = Kind::get, .key = "k"});
    world.run_for(50ms);
    if (leaves) {
      world.network(0).announce_leave({});
      world.run_for(1s);
      world.network(0).leave();
      world.cluster.endpoint(0).close(TimePoint::max());
    } else {
      world.cluster.inject({.kind = messages::Fault::Kind::kill_rank, .a = 0, .at = world.cluster.elapsed()});
    }
    world.run_for(20s);
    EXPECT_TRUE(before->is_lost) << (leaves ? "left" : "killed");
    EXPECT_TRUE(ask(world, 3, {.kind = Kind::try_get, .key = "k"})->is_lost);
  }
}

}  // namespace
}  // namespace tutti::control
