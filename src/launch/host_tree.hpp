// host_tree.hpp: which agent starts which.
// SPDX-License-Identifier: Apache-2.0
//
// Node 0 is tuttirun, node i + 1 the agent of host i. Nodes are numbered by level, so that node v starts the nodes
// v·k + 1 to v·k + k, for a fan-out of k: n hosts are reached in log_k n levels.
#pragma once

#include <algorithm>
#include <vector>

namespace tutti::launch {

struct HostTree {
  int hosts = 1;
  int fan_out = 16;

  [[nodiscard]] std::vector<int> children_of(int node) const {
    std::vector<int> children;
    // In 64 bits: the product may exceed an int.
    const long long first = static_cast<long long>(node) * fan_out + 1;
    for (long long child = first; child < first + fan_out && child <= hosts; ++child)
      children.push_back(static_cast<int>(child));
    return children;
  }

  [[nodiscard]] int parent_of(int node) const { return (node - 1) / fan_out; }

  // Which child of `node` leads to `target`; -1 if none does.
  [[nodiscard]] int next_hop(int node, int target) const {
    while (target > node && parent_of(target) != node) target = parent_of(target);
    return target > node ? target : -1;
  }
};

}  // namespace tutti::launch
