// cost_test.cpp: the closed forms say what the plans do.
// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plan/layout.hpp"
#include "sim/timeline.hpp"

namespace tutti {
namespace {

// A spec whose array divides evenly by everything an algorithm may cut it into.
Spec spec_of(const CatalogRow& row, int size, std::int64_t scale = 1) {
  Spec spec{.verb = row.verb, .algorithm = row.algorithm, .size = size, .finish = false};
  const std::int64_t whole = scale * 2 * size * floor_power_of_two(size);
  spec.count = row.verb == Verb::barrier ? 0 : has_blocks(row.verb) ? whole / size : whole;
  if (row.verb == Verb::permute) {
    for (int rank = 0; rank < size; ++rank) spec.pairs.emplace_back(rank, (rank + 1) % size);
  }
  return spec;
}

Shape shape_of(const Spec& spec) {
  return {.verb = spec.verb,
          .bytes = has_blocks(spec.verb) ? spec.count * spec.size : spec.count,
          .topology = Topology::on_one_node(spec.size)};
}

// What the plans really do, in bytes of the busiest rank.
Cost measured(const Spec& spec, std::int64_t element_bytes) {
  const sim::Timeline timeline = sim::rehearse(spec, element_bytes, {});
  struct Counts {
    std::int64_t sent = 0, received = 0, reduced = 0, sends = 0, recvs = 0;
  };
  std::map<int, Counts> ranks;
  for (const sim::Message& message : timeline.messages) {
    ranks[message.from].sent += message.bytes, ++ranks[message.from].sends;
    ranks[message.to].received += message.bytes, ++ranks[message.to].recvs;
  }
  for (const sim::LocalWork& work : timeline.reductions) ranks[work.rank].reduced += work.bytes;
  Cost cost{.rounds = timeline.rounds, .time = timeline.seconds};
  for (const auto& [rank, counts] : ranks) {
    cost.messages = std::max({cost.messages, counts.sends, counts.recvs});
    cost.bytes_sent = std::max(cost.bytes_sent, counts.sent);
    cost.bytes_received = std::max(cost.bytes_received, counts.received);
    cost.bytes_reduced = std::max(cost.bytes_reduced, counts.reduced);
  }
  return cost;
}

TEST(Cost, RoundsAndBytesAreThoseOfThePlans) {
  for (const CatalogRow& row : catalog()) {
    if (row.algorithm == Algorithm::hierarchical) continue;
    for (const int size : {2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 24, 31, 32, 33}) {
      const Spec spec = spec_of(row, size);
      const Cost said = cost_of(row, shape_of(spec), 0, {});
      const Cost done = measured(spec, 1);
      SCOPED_TRACE(std::string(name_of(row.verb)) + " by " + std::string(name_of(row.algorithm)) + ", size " +
                   std::to_string(size));
      EXPECT_LE(done.rounds, said.rounds);
      if (size == floor_power_of_two(size)) {
        EXPECT_EQ(done.rounds, said.rounds);
      }
      EXPECT_EQ(done.bytes_sent, said.bytes_sent);
      EXPECT_EQ(done.bytes_received, said.bytes_received);
      if (row.verb == Verb::exscan && row.algorithm == Algorithm::recursive_doubling) {
        EXPECT_LE(done.bytes_reduced, said.bytes_reduced);  // no rank both receives and passes on in every round
      } else {
        EXPECT_EQ(done.bytes_reduced, said.bytes_reduced);
      }
      EXPECT_LE(done.messages, said.messages);
    }
  }
}

TEST(Cost, TheEstimatedTimeIsNearTheTimeInASimulation) {
  for (const CatalogRow& row : catalog()) {
    if (row.algorithm == Algorithm::hierarchical || row.verb == Verb::barrier) continue;
    for (const int size : {2, 5, 8, 16, 23}) {
      for (const std::int64_t scale : {1, 64, 4096}) {
        for (const std::int64_t segment : {0, 4096}) {
          if (segment > 0 && !row.segments) continue;
          Spec spec = spec_of(row, size, scale);
          spec.segment = segment / 4;
          Shape shape = shape_of(spec);
          shape.bytes *= 4;
          if (segment > 0 && shape.bytes / segment > 2000) continue;
          const double said = cost_of(row, shape, segment, {}).time, done = measured(spec, 4).time;
          SCOPED_TRACE(std::string(name_of(row.verb)) + " by " + std::string(name_of(row.algorithm)) + ", size " +
                       std::to_string(size) + ", bytes " + std::to_string(shape.bytes) + ", segment " +
                       std::to_string(segment));
          EXPECT_LT(said, 2 * done);
          EXPECT_GT(said, done / 2);
        }
      }
    }
  }
}

TEST(Cost, TopologyCountsNodesAndTheirRanks) {
  const Topology topology = Topology::of(5, {7, 7, 3, 7, 3});
  EXPECT_EQ(topology.nodes, 2);
  EXPECT_EQ(topology.local_min, 2);
  EXPECT_EQ(topology.local_max, 3);
}

}  // namespace
}  // namespace tutti
