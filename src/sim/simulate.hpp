// simulate.hpp: runs the programs of all ranks in virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/cluster.hpp"
#include "sim/workload.hpp"

namespace tutti::sim {

struct Outcome {
  double seconds = 0;                              // until the last rank that ends has ended
  std::int64_t rounds = 0;                         // messages that came one after the other
  std::int64_t messages = 0;                       // of all ranks
  std::int64_t rank_messages = 0, rank_bytes = 0;  // sent by the busiest rank
  int ended = 0;  // ranks that came to the end of their plan: all of them, unless one is dead
};

Outcome simulate(const Workload& workload, const Cluster& cluster);

}  // namespace tutti::sim
