// job_store_test.cpp: the job's store: each request takes effect once, and no wait outlives the keeper.
// SPDX-License-Identifier: Apache-2.0
#include "control/job_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

TEST(JobStoreOf, a_job_whose_keeper_is_killed_ends_every_wait_and_names_it) {
  SimulatedWorld world({.size = 4});
  world.run_for(50ms);
  const auto before = ask(world, 2, {.kind = Kind::get, .key = "k"});
  world.run_for(50ms);
  world.cluster.inject({.kind = messages::Fault::Kind::kill_rank, .a = 0, .at = world.cluster.elapsed()});
  world.run_for(20s);
  EXPECT_EQ(before->lost, 0);
  EXPECT_EQ(ask(world, 3, {.kind = Kind::try_get, .key = "k"})->lost, 0);
}

TEST(JobStoreOf, a_rank_that_the_others_gave_up_ends_its_waits) {
  SimulatedWorld world({.size = 4});
  const auto got = ask(world, 3, {.kind = Kind::get, .key = "k"});
  world.run_for(50ms);
  world.cluster.inject(
      {.kind = messages::Fault::Kind::stall_rank, .a = 3, .at = world.cluster.elapsed(), .duration = 60s});
  world.run_for(100s);
  EXPECT_TRUE(got->lost.has_value());
}

// What each rank has to do, one request after the other, and what came of it.
class Client {
 public:
  Client(SimulatedWorld& world, int rank, std::vector<Request> program)
      : world_(world), rank_(rank), program_(std::move(program)) {}

  // Asks for the next one as soon as the latest is answered; true when all are.
  bool go_on() {
    if (current_ && !current_->has_ended()) return false;
    if (current_) done_.push_back(current_);
    current_ = nullptr;
    if (done_.size() == program_.size()) return true;
    current_ = ask(world_, rank_, program_[done_.size()]);
    return false;
  }
  [[nodiscard]] const std::vector<Handle>& done() const { return done_; }
  [[nodiscard]] bool lost_any() const {
    return (current_ && current_->lost) ||
           std::ranges::any_of(done_, [](const Handle& h) { return h->lost.has_value(); });
  }

 private:
  SimulatedWorld& world_;
  int rank_;
  std::vector<Request> program_;
  Handle current_;
  std::vector<Handle> done_;
};

// Every rank adds, takes its turn by compare_set, waits for what the rank before it has set, and leaves when it is done; in
// random order, some together.
class LeavingClients {
 public:
  LeavingClients(SimulatedWorld& world, Random& random) : world_(world), random_(random), leaving_(world) {
    const int size = world.cluster.size();
    for (int rank = 0; rank < size; ++rank) {
      std::vector<Request> program;
      const auto turn = [&] {
        program.push_back({.kind = Kind::add, .key = "n", .amount = 1});
        if (random.chance(0.3))
          program.push_back({.kind = Kind::set, .key = "large", .value = std::string(50'000, 'x')});
      };
      for (std::int64_t left = random.between(1, 20); left > 0; --left) turn();
      if (rank > 0) program.push_back({.kind = Kind::get, .key = "of " + std::to_string(rank - 1)});
      program.push_back(
          {.kind = Kind::compare_set, .key = "of " + std::to_string(rank), .value = std::to_string(rank)});
      for (std::int64_t left = random.between(0, 3); left > 0; --left) turn();
      clients_.emplace_back(world, rank, std::move(program));
      go_on(rank);
    }
  }
  [[nodiscard]] bool all_gone() const { return leaving_.gone().size() == clients_.size(); }
  [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }

 private:
  void go_on(int rank) {
    if (!world_.cluster.alive(rank)) return;
    Client& client = clients_[static_cast<std::size_t>(rank)];
    const bool is_done = client.go_on() || client.lost_any();
    const auto after = [&](std::int64_t us_max) {
      return world_.cluster.elapsed() + std::chrono::microseconds(random_.between(1, us_max));
    };
    if (is_done) {
      world_.cluster.at(after(random_.chance(0.5) ? 20 : 2000), [this, rank] {
        if (world_.cluster.alive(rank)) leaving_.announce(rank);
      });
    } else {
      world_.cluster.at(after(world_.cluster.elapsed() < 50ms ? 100 : 10'000), [this, rank] { go_on(rank); });
    }
  }

  SimulatedWorld& world_;
  Random& random_;
  LeavingRanks leaving_;
  std::vector<Client> clients_;
};

TEST(JobStoreOf, ranks_that_leave_in_any_order_loses_nothing_and_applies_nothing_twice) {
  int handed_over = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const int size = 1 + static_cast<int>(random.below(17));
    SimulatedWorld world({.size = size, .seed = seed});
    LeavingClients ranks(world, random);
    world.wake_all();
    ASSERT_TRUE(world.cluster.run_until([&] { return ranks.all_gone(); }, 60s)) << "seed " << seed;
    std::vector<std::int64_t> sums;
    for (int rank = 0; rank < size; ++rank) {
      for (const Handle& each : ranks.clients()[static_cast<std::size_t>(rank)].done()) {
        ASSERT_TRUE(each->reply.has_value()) << "seed " << seed << ", rank " << rank << ": " << each->request.key;
        if (each->request.kind == Kind::add) sums.push_back(each->reply->number);
        const bool is_get = each->request.kind == Kind::get;
        if (is_get || each->request.kind == Kind::compare_set) {
          EXPECT_EQ(value_of(each), std::to_string(is_get ? rank - 1 : rank)) << "seed " << seed;
        }
      }
      handed_over += rank > 0 && world.network(rank).store().keeper() > 0 ? 1 : 0;
      EXPECT_TRUE(world[rank].losses.empty()) << "seed " << seed;
    }
    std::ranges::sort(sums);
    for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], std::int64_t(i) + 1) << "seed " << seed;
  }
  EXPECT_GT(handed_over, 300);
}

// Some rank dies while the store goes around. Every request ends: with an answer, each amount added once, or with the loss
// of a rank; and where none of the keepers died, with an answer.
TEST(JobStoreOf, ranks_that_leave_and_die_ends_every_request_and_adds_nothing_twice) {
  int survived = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const int size = 3 + static_cast<int>(random.below(10));
    SimulatedWorld world({.size = size, .seed = seed});
    LeavingClients ranks(world, random);
    const int victim = static_cast<int>(random.below(random.chance(0.6) ? 3 : static_cast<std::uint64_t>(size)));
    world.cluster.inject({.kind = messages::Fault::Kind::kill_rank,
                          .a = victim,
                          .at = std::chrono::microseconds(random.between(0, 6000))});
    world.run_for(20s);
    std::vector<std::int64_t> sums;
    bool lost = false;
    for (int rank = 0; rank < size; ++rank) {
      if (rank == victim) continue;
      const Client& client = ranks.clients()[static_cast<std::size_t>(rank)];
      if (client.lost_any()) lost = true;
      for (const Handle& each : client.done()) {
        EXPECT_EQ(each->lost.value_or(victim), victim) << "seed " << seed;
        if (each->reply && each->request.kind == Kind::add) sums.push_back(each->reply->number);
      }
    }
    survived += lost ? 0 : 1;
    std::ranges::sort(sums);
    EXPECT_EQ(std::ranges::adjacent_find(sums), sums.end()) << "seed " << seed << ": one sum was given twice";
    const int waits_for_victim = victim + 1;  // it waits for what the victim never sets
    for (int rank = 0; rank < size && !lost; ++rank) {
      if (rank == victim || rank >= waits_for_victim) continue;
      EXPECT_TRUE(world.cluster.alive(rank) && world.network(rank).store().next_timer() == TimePoint::max())
          << "seed " << seed << ": rank " << rank << " still waits";
    }
  }
  EXPECT_GT(survived, 100);
  EXPECT_LT(survived, 280);
}

}  // namespace
}  // namespace tutti::control
