// cost.hpp: what a collective costs by each algorithm, in closed form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/catalog.hpp"
#include "plan/plan.hpp"

namespace tutti {

/// What the machine is like. The defaults are those of TCP: over loopback inside a node, over a 10 Gbit/s network between.
struct CostModel {
  struct Link {
    double latency = 0;  // seconds until the first byte is there
    double seconds_per_byte = 0;
    friend bool operator==(const Link&, const Link&) = default;
  };
  Link inside{.latency = 10e-6, .seconds_per_byte = 1 / 4e9};
  Link between{.latency = 25e-6, .seconds_per_byte = 1 / 1.2e9};
  double overhead = 3e-6;  // seconds a rank is busy per message it sends or receives
  double reduce_seconds_per_byte = 1 / 8e9;
  double incast = 1.15;          // times as long as bytes take where several hosts send to one at once
  double queue_bytes = 1 << 20;  // between hosts, what waits before the announcement of the next long message
  friend bool operator==(const CostModel&, const CostModel&) = default;
};

/// How the ranks lie on nodes, as far as costs depend on it.
struct Topology {
  int size = 1;
  int nodes = 1;
  int local_min = 1;  // ranks on the smallest node
  int local_max = 1;
  /// `node_of` as in Spec; empty: all on one node.
  static Topology of(int size, const std::vector<int>& node_of);
  static Topology on_one_node(int size) { return {.size = size, .nodes = 1, .local_min = size, .local_max = size}; }
};

/// What an algorithm is asked for. `bytes`: all of the array (of all blocks, for the verbs with one per rank).
struct Shape {
  Verb verb = Verb::barrier;
  std::int64_t bytes = 0;
  bool uneven = false;
  Topology topology{};
  bool in_rank_order = false;  // of operands
};

/// Bytes and messages are those of the busiest rank.
struct Cost {
  std::int64_t rounds = 0;    // messages that come one after the other; exact for powers of two, else at most
  std::int64_t messages = 0;  // sent or received, whichever is more; an upper bound
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t bytes_reduced = 0;
  double time = 0;  // seconds, estimated
};

bool serves(const CatalogRow& row, const Shape& shape);
/// `segment`: bytes of a pipeline segment, 0 for none.
Cost cost_of(const CatalogRow& row, const Shape& shape, std::int64_t segment, const CostModel& model);

}  // namespace tutti
