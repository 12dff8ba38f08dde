// simulate_test.cpp: the clock of the simulation, worked out by hand where that is possible.
// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include <gtest/gtest.h>

namespace tutti::sim {
namespace {

// Round numbers: 1 µs per message, 10 µs inside, 100 µs between, 1 ns per byte for a core, 2 for a card.
Cluster cluster_of(int ranks, int ranks_per_host) {
  Cluster cluster{.ranks = ranks, .ranks_per_host = ranks_per_host};
  cluster.speed = {.inside = {.latency = 10e-6, .seconds_per_byte = 1e-9},
                   .between = {.latency = 100e-6, .seconds_per_byte = 2e-9},
                   .overhead = 1e-6,
                   .reduce_seconds_per_byte = 0.5e-9};
  cluster.inside = ThroughputCurve(1e-9);
  cluster.reduce = ThroughputCurve(0.5e-9);
  cluster.copy = ThroughputCurve(0.25e-9);
  return cluster;
}

Outcome run(Verb verb, Algorithm algorithm, std::int64_t bytes, const Cluster& cluster, std::int64_t segment = 0) {
  const Question question{
      .verb = verb, .bytes = bytes, .choice = {.algorithm = algorithm, .segment_bytes = segment}, .every_rank = true};
  return simulate(*make_workload(question, cluster, {}), cluster);
}

constexpr double tiny = 1e-12;

TEST(Simulate, AMessageInsideAHostCostsBothCoresAndTheLatency) {
  const Outcome outcome = run(Verb::broadcast, Algorithm::binomial, 1000, cluster_of(2, 2));
  EXPECT_NEAR(outcome.seconds, 2e-6 + 10e-6 + 1e-6 + 1e-6, tiny);  // send, travel, receive
  EXPECT_EQ(outcome.rounds, 1);
  EXPECT_EQ(outcome.messages, 1);
}

TEST(Simulate, ACallCostsEachRankItsEntry) {
  Cluster cluster = cluster_of(2, 2);
  cluster.call = 7e-6;
  EXPECT_NEAR(run(Verb::broadcast, Algorithm::binomial, 1000, cluster).seconds, 7e-6 + 14e-6, tiny);
}

TEST(Simulate, CallsOneAfterTheOtherOverlapAndCountAsOneOnAverage) {
  Cluster cluster = cluster_of(3, 3);
  cluster.call = 2e-6;
  const auto calls = [&](Verb verb, Algorithm algorithm, int count) {
    const Question question{.verb = verb, .bytes = 8, .choice = {.algorithm = algorithm}, .calls = count};
    return simulate(*make_workload(question, cluster, {}), cluster);
  };
  // In a chain the first rank is done as soon as it has sent: it does not wait for the others.
  const Outcome one = calls(Verb::broadcast, Algorithm::chain, 1), many = calls(Verb::broadcast, Algorithm::chain, 100);
  EXPECT_LT(many.seconds, one.seconds / 3);
  EXPECT_GT(many.seconds, 2e-6 + 2 * 1e-6) << "the rank in the middle enters, receives and sends";
  EXPECT_EQ(many.messages, one.messages);
  EXPECT_EQ(many.rank_bytes, one.rank_bytes);
  EXPECT_EQ(many.rounds, one.rounds);
  EXPECT_EQ(many.ended, 3);
  // Nobody leaves a barrier early, so that nothing overlaps.
  cluster = cluster_of(2, 2);
  EXPECT_NEAR(calls(Verb::barrier, Algorithm::dissemination, 10).seconds,
              calls(Verb::barrier, Algorithm::dissemination, 1).seconds, tiny);
  cluster = cluster_of(1, 1);
  cluster.call = 2e-6;
  EXPECT_NEAR(calls(Verb::barrier, Algorithm::dissemination, 10).seconds, 2e-6, tiny);
}

TEST(Simulate, MessagesThatAreSentAtOnceMayHaveAPaceOfTheirOwn) {
  Cluster cluster = cluster_of(2, 2);
  const double eager = run(Verb::broadcast, Algorithm::binomial, 64 << 10, cluster).seconds;
  cluster.inside_eager = ThroughputCurve(0.5e-9);
  EXPECT_LT(run(Verb::broadcast, Algorithm::binomial, 64 << 10, cluster).seconds, eager - 0.4e-9 * (64 << 10));
}

TEST(Simulate, WhileTheEndsOfALongMessageWaitForEachOtherTheirCoresServeOthers) {
  const auto faster = [](Verb verb, Algorithm algorithm, Cluster cluster) {
    const double slow = run(verb, algorithm, 1 << 20, cluster).seconds;
    cluster.inside_eager = ThroughputCurve(0.5e-9);
    return slow / run(verb, algorithm, 1 << 20, cluster).seconds;
  };
  EXPECT_NEAR(faster(Verb::all_to_all, Algorithm::pairwise, cluster_of(2, 2)), 1, 0.05) << "one message each way";
  EXPECT_GT(faster(Verb::all_to_all, Algorithm::direct, cluster_of(8, 8)), 1.4) << "seven";
  Cluster few_cores = cluster_of(8, 8);
  few_cores.cores = 2;
  EXPECT_EQ(faster(Verb::all_to_all, Algorithm::direct, few_cores), 1)
      << "where ranks share cores somebody always has work";
}

TEST(Simulate, AMessageThatComesBeforeItsReceiverHasEnteredIsTakenOnce) {
  Cluster cluster = cluster_of(4, 4);
  cluster.call = 7e-6;
  cluster.slow = {{.rank = 1, .factor = 100}, {.rank = 3, .factor = 50}};
  for (const std::int64_t bytes : {8, 40'000, 400'000}) {
    EXPECT_EQ(run(Verb::all_reduce, Algorithm::ring, bytes, cluster).ended, 4);
    EXPECT_GT(run(Verb::all_reduce, Algorithm::ring, bytes, cluster).seconds, 700e-6);
  }
}

TEST(Simulate, AMessageBetweenHostsPassesTwoCardsAsItFlows) {
  const Outcome outcome = run(Verb::broadcast, Algorithm::binomial, 1000, cluster_of(2, 1));
  EXPECT_NEAR(outcome.seconds, 2e-6 + 100e-6 + 2e-6 + 2e-6, tiny);  // the cards overlap
}

TEST(Simulate, ALongMessageWaitsForItsCtsAndIsReceivedAsItComes) {
  const Cluster cluster = cluster_of(2, 2);
  const std::int64_t bytes = 1 << 20, first = 16 << 10;
  const double one_way = 1e-6 + 10e-6;
  const Outcome outcome = run(Verb::broadcast, Algorithm::binomial, bytes, cluster);
  const double sent = 2 * one_way + 1e-6 + static_cast<double>(bytes) * 1e-9;
  EXPECT_NEAR(outcome.seconds, sent + 10e-6 + static_cast<double>(first) * 1e-9, 1.1e-6);
}

TEST(Simulate, RanksOfAHostShareItsCard) {
  // Ranks 0 … 3 of one host send to one rank each of the other.
  const double alone = run(Verb::permute, Algorithm::direct, 1 << 20, cluster_of(2, 1)).seconds;
  Cluster cluster = cluster_of(8, 4);
  const Question question{.verb = Verb::all_to_all, .bytes = 8 << 20, .choice = {.algorithm = Algorithm::direct}};
  const double shared = simulate(*make_workload(question, cluster, {}), cluster).seconds;
  // 16 messages of 1 MiB leave through one card.
  EXPECT_GT(shared, 16 * (1 << 20) * 2e-9);
  EXPECT_LT(shared, 1.5 * 16 * (1 << 20) * 2e-9 + alone);
}

TEST(Simulate, AnOversubscribedCoreSlowsWhatLeavesTheHostsAndNothingElse) {
  Cluster cluster = cluster_of(8, 2);
  const double free = run(Verb::all_to_all, Algorithm::direct, 64 << 20, cluster).seconds;
  cluster.oversubscription = 4;
  const double tight = run(Verb::all_to_all, Algorithm::direct, 64 << 20, cluster).seconds;
  EXPECT_GT(tight, 3 * free);
  EXPECT_LT(tight, 5 * free);
  Cluster one_host = cluster_of(8, 8);
  const double inside = run(Verb::all_to_all, Algorithm::direct, 64 << 20, one_host).seconds;
  one_host.oversubscription = 4;
  EXPECT_EQ(run(Verb::all_to_all, Algorithm::direct, 64 << 20, one_host).seconds, inside);
}

TEST(Simulate, FewCoresDoTheWorkOfManyRanksOneAfterTheOther) {
  Cluster cluster = cluster_of(8, 8);
  const double many = run(Verb::all_reduce, Algorithm::ring, 8 << 20, cluster).seconds;
  cluster.cores = 2;
  cluster.wake = 0;
  const double few = run(Verb::all_reduce, Algorithm::ring, 8 << 20, cluster).seconds;
  EXPECT_GT(few, 3.5 * many);
  EXPECT_LT(few, 5 * many);
}

TEST(Simulate, AWaitingRankNeedsTimeToWakeWhereCoresAreShared) {
  Cluster cluster = cluster_of(4, 4);
  cluster.cores = 2;
  cluster.wake = 0;
  const double awake = run(Verb::broadcast, Algorithm::chain, 8, cluster).seconds;
  cluster.wake = 50e-6;
  const double asleep = run(Verb::broadcast, Algorithm::chain, 8, cluster).seconds;
  EXPECT_NEAR(asleep, awake + 3 * 50e-6, tiny);  // three ranks wait for their message longer than they stay awake
  cluster.cores = 4;
  EXPECT_LT(run(Verb::broadcast, Algorithm::chain, 8, cluster).seconds, awake + tiny);
}

TEST(Simulate, ToHandACoreOverTakesATurn) {
  Cluster cluster = cluster_of(2, 2);
  cluster.cores = 1;
  // Both send, then both receive: the core goes to rank 1, back to 0, and again to 1. Only those who come back pay.
  const double free = run(Verb::barrier, Algorithm::dissemination, 0, cluster).seconds;
  cluster.turn = 3e-6;
  const double paid = run(Verb::barrier, Algorithm::dissemination, 0, cluster).seconds;
  EXPECT_GT(paid, free + 2.9e-6);
  EXPECT_LT(paid, free + 6.1e-6);
}

TEST(Simulate, ASlowRankHoldsEveryoneUp) {
  Cluster cluster = cluster_of(8, 1);
  const double even = run(Verb::all_reduce, Algorithm::ring, 1 << 20, cluster).seconds;
  cluster.slow = {{.rank = 5, .factor = 20}};
  const double slow = run(Verb::all_reduce, Algorithm::ring, 1 << 20, cluster).seconds;
  EXPECT_GT(slow, 2 * even);
  EXPECT_EQ(run(Verb::all_reduce, Algorithm::ring, 1 << 20, cluster).ended, 8);
}

TEST(Simulate, WithoutADeadRankAllEndAndWithOneThoseWhoNeedItDoNot) {
  Cluster cluster = cluster_of(8, 2);
  EXPECT_EQ(run(Verb::broadcast, Algorithm::binomial, 64, cluster).ended, 8);
  cluster.dead = 4;  // 5, 6 and 7 hang below it
  EXPECT_EQ(run(Verb::broadcast, Algorithm::binomial, 64, cluster).ended, 4);
  EXPECT_EQ(run(Verb::all_reduce, Algorithm::recursive_doubling, 64, cluster).ended, 0);
}

TEST(Simulate, NobodyLeavesABarrierThatSomebodyHasNotEntered) {
  for (const Algorithm algorithm : {Algorithm::dissemination, Algorithm::hierarchical}) {
    for (int size = 2; size <= 17; ++size) {
      Cluster cluster = cluster_of(size, 3);
      for (cluster.dead = 0; cluster.dead < size; ++cluster.dead) {
        EXPECT_EQ(run(Verb::barrier, algorithm, 0, cluster).ended, 0)
            << name_of(algorithm) << ", " << size << " ranks, " << cluster.dead << " stays away";
      }
    }
  }
}

TEST(Simulate, SegmentsOfTwoLevelsOverlapAndMoveAsManyBytes) {
  const Cluster cluster{.ranks = 32, .ranks_per_host = 8};
  const std::int64_t bytes = 64 << 20;
  for (const Verb verb : {Verb::all_reduce, Verb::reduce, Verb::broadcast}) {
    const Outcome whole = run(verb, Algorithm::hierarchical, bytes, cluster);
    const Outcome cut = run(verb, Algorithm::hierarchical, bytes, cluster, 4 << 20);
    EXPECT_EQ(cut.ended, 32);
    EXPECT_LE(cut.rank_bytes, whole.rank_bytes * 11 / 10) << name_of(verb);
    EXPECT_LT(cut.seconds, 0.92 * whole.seconds) << name_of(verb);
  }
}

// Between hosts that are far apart the fewest rounds count, 3 for 8 hosts; between neighbours fewer bytes in 6 would.
TEST(Simulate, ThePartBetweenHostsIsChosenForHosts) {
  Cluster cluster = cluster_of(16, 2);
  cluster.speed.between.latency = 10e-3;
  cluster.speed.inside.latency = 1e-9;
  cluster.speed.overhead = 1e-9;
  const Question question{
      .verb = Verb::all_reduce, .bytes = 64 << 10, .choice = {.algorithm = Algorithm::hierarchical}};
  const Outcome outcome = simulate(*make_workload(question, cluster, {.model = cluster.speed}), cluster);
  EXPECT_EQ(outcome.ended, 16);
  EXPECT_LT(outcome.seconds, 4 * 10e-3);
}

TEST(Simulate, RoundsAndBytesAreThoseOfTheClosedForms) {
  for (const CatalogRow& row : catalog()) {
    if (row.algorithm == Algorithm::hierarchical) continue;
    for (const int size : {2, 4, 8, 16}) {
      const std::int64_t bytes = row.verb == Verb::barrier ? 0 : 4 * 2 * 16 * 16;
      const Outcome outcome = run(row.verb, row.algorithm, bytes, cluster_of(size, size));
      const Cost cost =
          cost_of(row, {.verb = row.verb, .bytes = bytes, .topology = Topology::on_one_node(size)}, 0, {});
      SCOPED_TRACE(std::string(name_of(row.verb)) + " by " + std::string(name_of(row.algorithm)));
      EXPECT_EQ(outcome.rounds, cost.rounds);
      EXPECT_EQ(outcome.rank_bytes, cost.bytes_sent);
      EXPECT_EQ(outcome.ended, size);
    }
  }
}

TEST(Simulate, EveryAlgorithmEndsOnEveryShapeOfCluster) {
  for (const CatalogRow& row : catalog()) {
    for (const auto& [ranks, per_host, cores] : {std::tuple{7, 3, 0}, std::tuple{12, 4, 2}, std::tuple{33, 8, 1}}) {
      Cluster cluster = cluster_of(ranks, per_host);
      cluster.cores = cores;
      cluster.oversubscription = 2;
      for (const std::int64_t bytes : {1, 10'000, 3'000'000}) {
        const std::int64_t segment = row.segments ? 8192 : 0;
        EXPECT_EQ(run(row.verb, row.algorithm, bytes, cluster, segment).ended, ranks)
            << name_of(row.verb) << " by " << name_of(row.algorithm) << ", " << bytes << " bytes, " << ranks
            << " ranks";
      }
    }
  }
}

}  // namespace
}  // namespace tutti::sim
