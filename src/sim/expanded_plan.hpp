// expanded_plan.hpp: a plan with its sub-requests written out, before it becomes a program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.hpp"

namespace tutti::sim {

struct ExpandedPlan {
  struct Node {
    Work work = Work::join;
    int peer = -1;  // rank in the world
    std::int64_t bytes = 0;
    std::int64_t reduced_bytes = 0;
    std::int64_t bytes_since = 0;  // see Task
  };
  struct Edge {
    std::uint32_t before, after;
  };
  std::vector<Node> nodes;  // in an order in which they could be run
  std::vector<Edge> edges;
};

ExpandedPlan write_out(const Plan& plan, std::int64_t element_bytes, const Table& table);

/// Local nodes that wait for the same nodes and are waited for by the same become one.
void merge_equivalent_nodes(ExpandedPlan& expanded);

}  // namespace tutti::sim
