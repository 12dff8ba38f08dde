// simulated_cluster_test.cpp: the simulated cluster keeps the transport's promises, and its history can be replayed.
// SPDX-License-Identifier: Apache-2.0
#include "verify/simulated_cluster.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::messages {
namespace {

using namespace std::chrono_literals;
using State = Transfer::State;

struct Recorder final : TransportListener {
  Verdict arrived(int, const Envelope& envelope) override {
    return envelope.group == dropped_group ? Verdict::drop : Verdict::keep;
  }
  void control(int peer, std::span<const std::byte> message) override { controls.emplace_back(peer, message.size()); }
  void lost(int peer, std::string_view reason) override { losses.emplace_back(peer, reason); }

  std::uint64_t dropped_group = 0;
  std::vector<std::pair<int, std::size_t>> controls;
  std::vector<std::pair<int, std::string>> losses;
};

// A cluster whose ranks only poll; the test starts transfers from outside.
struct Cluster {
  explicit Cluster(SimulationOptions options) : cluster(options), listeners(static_cast<std::size_t>(options.size)) {
    for (int rank = 0; rank < options.size; ++rank) cluster.endpoint(rank).listen(&listeners[std::size_t(rank)]);
  }
  bool settle(const Transfer& transfer) {
    return cluster.run_until([&] { return transfer.state != State::pending; }, 1s);
  }

  SimulatedCluster cluster;
  std::vector<Recorder> listeners;
};

Transfer message(int peer, std::uint32_t tag, std::vector<std::byte>& bytes) {
  Transfer transfer;
  transfer.envelope.group = 7;
  transfer.envelope.tag = tag;
  transfer.envelope.channel = point_to_point_channel;
  transfer.envelope.bytes = static_cast<std::int64_t>(bytes.size());
  transfer.peer = peer;
  transfer.from = bytes.data();
  transfer.to = bytes.data();
  return transfer;
}

std::vector<std::byte> filled(std::size_t size, int value) { return std::vector(size, static_cast<std::byte>(value)); }

class SimulatedBytes : public testing::TestWithParam<std::size_t> {};

TEST_P(SimulatedBytes, arrive_whether_the_receive_or_the_send_comes_first) {
  for (const bool receive_first : {true, false}) {
    Cluster c({.size = 2});
    auto source = filled(GetParam(), 5);
    auto target = filled(GetParam(), 0);
    Transfer send = message(1, 3, source);
    Transfer recv = message(0, 3, target);
    if (receive_first) c.cluster.endpoint(1).recv(recv);
    c.cluster.endpoint(0).send(send);
    c.cluster.run_for(1ms);
    if (!receive_first) c.cluster.endpoint(1).recv(recv);
    ASSERT_TRUE(recv.state == State::done || c.settle(recv));
    ASSERT_TRUE(send.state == State::done || c.settle(send));
    EXPECT_EQ(recv.state, State::done);
    EXPECT_EQ(target, source);
  }
}

INSTANTIATE_TEST_SUITE_P(sizes, SimulatedBytes, testing::Values(0, 1, 1024, 1025, 200'000));

TEST(SimulatedMemory, of_a_send_is_read_when_it_leaves_and_not_before) {
  Cluster c({.size = 2});
  auto source = filled(100, 1);
  auto target = filled(100, 0);
  Transfer send = message(1, 0, source);
  Transfer recv = message(0, 0, target);
  c.cluster.endpoint(0).send(send);
  std::fill(source.begin(), source.end(), std::byte{9});  // too early, and the receiver sees it
  c.cluster.endpoint(1).recv(recv);
  ASSERT_TRUE(c.settle(recv));
  EXPECT_EQ(target, filled(100, 9));
}

TEST(SimulatedMemory, is_not_touched_after_a_cancelled_receive) {
  for (int steps = 0; steps < 40; ++steps) {  // at every point of the protocol
    Cluster c({.size = 2, .segment_bytes = 1000});
    auto source = filled(10'000, 1);
    auto target = filled(10'000, 0);
    Transfer send = message(1, 0, source);
    Transfer recv = message(0, 0, target);
    c.cluster.endpoint(1).recv(recv);
    c.cluster.endpoint(0).send(send);
    for (int i = 0; i < steps; ++i) c.cluster.step();
    c.cluster.endpoint(1).cancel(recv);
    EXPECT_EQ(recv.state, State::idle);
    std::fill(target.begin(), target.end(), std::byte{7});
    c.cluster.run_for(100ms);
    EXPECT_EQ(target, filled(10'000, 7)) << "cancelled after step " << steps;
  }
}

TEST(SimulatedMemory, is_not_read_after_a_cancelled_send_and_the_receive_gets_the_next_message) {
  for (int steps = 0; steps < 40; ++steps) {
    Cluster c({.size = 2, .segment_bytes = 1000});
    auto source = filled(10'000, 1);
    auto target = filled(10'000, 0);
    Transfer send = message(1, 0, source);
    Transfer recv = message(0, 0, target);
    c.cluster.endpoint(1).recv(recv);
    c.cluster.endpoint(0).send(send);
    for (int i = 0; i < steps; ++i) c.cluster.step();
    c.cluster.endpoint(0).cancel(send);
    std::fill(source.begin(), source.end(), std::byte{8});
    c.cluster.run_for(100ms);
    EXPECT_EQ(std::count(target.begin(), target.end(), std::byte{8}), 0) << "cancelled after step " << steps;
    if (recv.state == State::done) {
      EXPECT_EQ(target, filled(10'000, 1));
      continue;
    }
    auto next = filled(10'000, 2);
    Transfer again = message(1, 0, next);
    c.cluster.endpoint(0).send(again);
    c.cluster.run_for(100ms);
    EXPECT_EQ(recv.state, State::done) << recv.error;
    EXPECT_EQ(target, next) << "withdrawn after step " << steps;
  }
}

TEST(SimulatedMessages, of_one_tag_never_overtake_each_other) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster c({.size = 2, .seed = seed, .jitter = 5.0, .credit_bytes = 2048});
    Random random(seed);
    std::vector<std::vector<std::byte>> sources, targets;
    std::vector<Transfer> sends, receives;
    for (int i = 0; i < 30; ++i) {
      const std::size_t size = random.below(3000);
      sources.push_back(filled(size, i));
      targets.push_back(filled(size, 255));
    }
    for (std::size_t i = 0; i < 30; ++i) sends.push_back(message(1, 1, sources[i]));
    for (std::size_t i = 0; i < 30; ++i) receives.push_back(message(i % 2 == 0 ? 0 : any_peer, 1, targets[i]));
    for (std::size_t i = 0; i < 30; ++i) {
      c.cluster.endpoint(0).send(sends[i]);
      if (i % 3 == 0) c.cluster.run_for(15us);
    }
    for (Transfer& receive : receives) c.cluster.endpoint(1).recv(receive);
    ASSERT_TRUE(c.cluster.run_until(
        [&] { return std::ranges::all_of(receives, [](auto& r) { return r.state == State::done; }); }, 1s));
    EXPECT_EQ(targets, sources) << "seed " << seed;
  }
}

TEST(SimulatedCredits, bound_what_nobody_asked_for_and_let_what_is_waited_for_through) {
  Cluster c({.size = 2, .credit_bytes = 4096});
  auto flood = filled(1000, 1);
  std::vector<Transfer> sends(500, message(1, 1, flood));
  for (Transfer& send : sends) c.cluster.endpoint(0).send(send);
  auto source = filled(1000, 2);
  auto target = filled(1000, 0);
  Transfer wanted_send = message(1, 2, source);
  Transfer wanted = message(0, 2, target);
  c.cluster.endpoint(0).send(wanted_send);
  c.cluster.run_for(10ms);
  EXPECT_LE(c.cluster.endpoint(1).held_bytes(), 4096);
  c.cluster.endpoint(1).recv(wanted);
  ASSERT_TRUE(c.settle(wanted));
  EXPECT_EQ(target, source);

  c.cluster.endpoint(1).forget(7, every_sequence);  // those who still wait to be asked for are let go
  ASSERT_TRUE(c.cluster.run_until(
      [&] { return std::ranges::all_of(sends, [](auto& s) { return s.state == State::done; }); }, 1s));
  EXPECT_EQ(c.cluster.endpoint(1).held_bytes(), 0);
}

TEST(SimulatedMessages, that_the_listener_drops_do_not_block_their_sender) {
  for (const std::size_t size : {10u, 10'000u}) {
    Cluster c({.size = 2, .credit_bytes = 100});
    c.listeners[1].dropped_group = 7;
    auto source = filled(size, 1);
    std::vector<Transfer> sends(50, message(1, 1, source));
    for (Transfer& send : sends) c.cluster.endpoint(0).send(send);
    EXPECT_TRUE(c.cluster.run_until(
        [&] { return std::ranges::all_of(sends, [](auto& s) { return s.state == State::done; }); }, 1s));
    EXPECT_EQ(c.cluster.endpoint(1).held_bytes(), 0);
  }
}

TEST(SimulatedControl, does_not_queue_behind_data) {
  Cluster c({.size = 2});
  auto source = filled(100'000'000, 1);
  Transfer send = message(1, 1, source);
  Transfer recv = message(0, 1, source);
  recv.to = source.data();
  c.cluster.endpoint(1).recv(recv);
  c.cluster.endpoint(0).send(send);
  c.cluster.run_for(1ms);  // of the 80 ms that the data take
  c.cluster.endpoint(0).post(1, filled(100, 3));
  EXPECT_TRUE(c.cluster.run_until([&] { return !c.listeners[1].controls.empty(); }, 1ms));
  EXPECT_EQ(recv.state, State::pending);
}

TEST(SimulatedFaults, a_killed_rank_is_told_once_to_those_linked_to_it_and_ends_their_transfers) {
  Cluster c({.size = 3});
  auto bytes = filled(10'000, 1);
  Transfer recv = message(1, 1, bytes);
  Transfer send = message(1, 2, bytes);
  c.cluster.endpoint(0).recv(recv);
  c.cluster.endpoint(0).send(send);
  c.cluster.inject({.kind = Fault::Kind::kill_rank, .a = 1, .at = 5ms});
  ASSERT_TRUE(c.settle(recv));
  c.cluster.run_for(1s);
  EXPECT_EQ(recv.state, State::failed);
  EXPECT_EQ(send.state, State::failed);
  EXPECT_THAT(recv.error, testing::HasSubstr("rank 1"));
  ASSERT_EQ(c.listeners[0].losses.size(), 1u);
  EXPECT_EQ(c.listeners[0].losses[0].first, 1);
  EXPECT_TRUE(c.listeners[2].losses.empty());

  c.cluster.endpoint(2).attach(1);  // refused, and noticed
  c.cluster.run_for(1s);
  EXPECT_EQ(c.listeners[2].losses.size(), 1u);
  Transfer late = message(1, 3, bytes);
  c.cluster.endpoint(0).send(late);
  EXPECT_EQ(late.state, State::failed);
}

TEST(SimulatedFaults, a_cut_link_is_noticed_by_both_ends_and_one_way_by_the_sender) {
  for (const auto kind : {Fault::Kind::cut_link, Fault::Kind::cut_one_way}) {
    Cluster c({.size = 3});
    for (int rank = 0; rank < 3; ++rank) c.cluster.endpoint(rank).attach((rank + 1) % 3);
    c.cluster.inject({.kind = kind, .a = 0, .b = 1});
    c.cluster.run_for(1s);
    EXPECT_EQ(c.listeners[0].losses.size(), 1u);
    EXPECT_EQ(c.listeners[1].losses.size(), kind == Fault::Kind::cut_link ? 1u : 0u);
    EXPECT_TRUE(c.listeners[2].losses.empty());
  }
}

TEST(SimulatedFaults, a_stalled_rank_or_link_delays_everything_and_loses_nothing) {
  for (const auto kind : {Fault::Kind::stall_link, Fault::Kind::stall_rank, Fault::Kind::delay_rank}) {
    Cluster c({.size = 2});
    auto source = filled(5000, 4);
    auto target = filled(5000, 0);
    Transfer send = message(1, 0, source);
    Transfer recv = message(0, 0, target);
    c.cluster.inject({.kind = kind, .a = 1, .b = 0, .duration = 50ms});
    c.cluster.step();
    c.cluster.run_for(1us);
    c.cluster.endpoint(1).recv(recv);
    c.cluster.endpoint(0).send(send);
    ASSERT_TRUE(c.settle(recv));
    EXPECT_EQ(target, source);
    EXPECT_GE(c.cluster.elapsed(), 50ms);
    EXPECT_TRUE(c.listeners[0].losses.empty() && c.listeners[1].losses.empty());
  }
}

TEST(SimulatedFaults, a_slow_rank_is_given_the_processor_less_often) {
  Cluster c({.size = 1});
  int runs = 0;
  c.cluster.set_program(0, [&] { return ++runs < 100; });
  c.cluster.inject({.kind = Fault::Kind::slow_rank, .a = 0, .at = 1ns, .duration = 10ms});
  c.cluster.run_until([&] { return runs >= 100; }, 1s);
  const Duration at_full_speed = c.cluster.elapsed();
  runs = 0;
  c.cluster.run_for(1us);
  c.cluster.wake(0);
  c.cluster.run_until([&] { return runs >= 100; }, 10s);
  EXPECT_LT(at_full_speed, 1ms);
  EXPECT_GE(c.cluster.elapsed(), 980ms);
}

TEST(SimulatedClose, is_a_goodbye_and_not_a_loss) {
  Cluster c({.size = 2});
  auto bytes = filled(10, 1);
  Transfer recv = message(1, 1, bytes);
  c.cluster.endpoint(0).recv(recv);
  c.cluster.endpoint(1).post(0, bytes);
  c.cluster.endpoint(1).close(TimePoint::max());
  c.cluster.run_for(1s);
  EXPECT_EQ(recv.state, State::failed);  // it will not come any more
  EXPECT_EQ(c.listeners[0].controls.size(), 1u);
  EXPECT_TRUE(c.listeners[0].losses.empty());
}

TEST(SimulatedWait, gives_the_processor_back_at_that_time) {
  SimulatedCluster cluster({.size = 1});
  const TimePoint start = cluster.clock().now();
  std::vector<Duration> runs;
  cluster.set_program(0, [&] {
    runs.push_back(cluster.clock().now() - start);
    if (runs.size() < 3) cluster.endpoint(0).wait(cluster.clock().now() + 5ms, Transport::Events::all);
    return false;
  });
  EXPECT_FALSE(cluster.run_until([] { return false; }, 1s));
  EXPECT_THAT(runs, testing::ElementsAre(0ms, 5ms, 10ms));
}

std::uint64_t history(std::uint64_t seed) {
  Cluster c({.size = 5, .seed = seed});
  Random random(seed);
  c.cluster.inject(draw_fault(random, 5, 1ms, 1ms));
  auto bytes = filled(3000, 1);
  std::vector<Transfer> transfers;
  transfers.reserve(80);
  for (int i = 0; i < 40; ++i) {
    const int from = static_cast<int>(random.below(5));
    const int to = static_cast<int>((from + 1 + random.below(4)) % 5);
    c.cluster.endpoint(from).send(transfers.emplace_back(message(to, std::uint32_t(i), bytes)));
    c.cluster.endpoint(to).recv(transfers.emplace_back(message(from, std::uint32_t(i), bytes)));
    c.cluster.run_for(20us);
  }
  c.cluster.run_for(1s);
  return c.cluster.trace();
}

TEST(SimulatedReplay, of_a_seed_gives_the_same_history_and_other_seeds_give_others) {
  std::set<std::uint64_t> histories;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(history(seed), history(seed));
    histories.insert(history(seed));
  }
  EXPECT_EQ(histories.size(), 50u);
}

TEST(SimulatedFaults, are_drawn_of_every_kind_and_say_what_they_are) {
  Random random(3);
  std::map<Fault::Kind, std::string> seen;
  for (int i = 0; i < 200; ++i) {
    const Fault fault = draw_fault(random, 4, 1s, 1s);
    ASSERT_NE(fault.a, fault.b);
    seen[fault.kind] = describe(fault);
  }
  EXPECT_EQ(seen.size(), std::size_t{fault_kind_count});
  EXPECT_EQ(describe(Fault{.kind = Fault::Kind::cut_link, .a = 1, .b = 3, .at = 12500us}),
            "at 12.500 ms: the link between ranks 1 and 3 is cut");
}

}  // namespace
}  // namespace tutti::messages
