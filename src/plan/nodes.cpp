// nodes.cpp: which ranks share a node.
// SPDX-License-Identifier: Apache-2.0
#include "plan/nodes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tutti {

Nodes::Nodes(const Spec& spec, int first) : node_of(std::size_t(spec.size)), local_of(std::size_t(spec.size)) {
  std::map<int, int> numbers;
  int name = 0, number = -1;
  for (int rank = 0; rank < spec.size; ++rank) {
    const int before = std::exchange(name, spec.node_of.empty() ? 0 : spec.node_of[std::size_t(rank)]);
    if (number < 0 || name != before) {  // ranks of a node mostly follow each other: then there is nothing to look up
      const auto [found, added] = numbers.try_emplace(name, static_cast<int>(members.size()));
      if (added) members.emplace_back();
      number = found->second;
    }
    node_of[std::size_t(rank)] = number;
    members[std::size_t(number)].push_back(rank);
  }
  lanes = spec.size;
  for (std::vector<int>& ranks : members) {
    lanes = std::min(lanes, static_cast<int>(ranks.size()));
    const auto leader = std::find(ranks.begin(), ranks.end(), first);
    if (leader != ranks.end()) std::rotate(ranks.begin(), leader, leader + 1);
    for (std::size_t i = 0; i < ranks.size(); ++i) local_of[std::size_t(ranks[i])] = static_cast<int>(i);
  }
}

std::vector<int> Nodes::lane(int index) const {
  std::vector<int> ranks;
  ranks.reserve(members.size());
  for (const std::vector<int>& node : members) ranks.push_back(node[std::size_t(index)]);
  return ranks;
}

namespace {

/// Nobody says it where all share a node.
std::vector<int> nodes_of(const Spec& whole, const std::vector<int>& members) {
  std::vector<int> nodes;
  if (whole.node_of.empty()) return nodes;
  for (const int member : members) nodes.push_back(whole.node_of[std::size_t(member)]);
  if (std::ranges::count(nodes, nodes.front()) == std::ssize(nodes)) nodes.clear();
  return nodes;
}

}  // namespace

Spec spec_of(const Spec& whole, const SubCollective& call) {
  const auto me = std::find(call.members.begin(), call.members.end(), whole.rank) - call.members.begin();
  Spec spec{.verb = call.verb,
            .rank = static_cast<int>(me),
            .size = static_cast<int>(call.members.size()),
            .root = call.root,
            .finish = call.finish,
            .node_of = nodes_of(whole, call.members)};
  if (call.counts.size() == 1) {
    spec.count = call.counts[0];
  } else {
    spec.counts = call.counts;  // a barrier has none
  }
  return spec;
}

std::int64_t own_block(const Spec& spec) {
  if (spec.counts.empty()) return 0;
  return std::accumulate(spec.counts.begin(), spec.counts.begin() + spec.rank, std::int64_t{0});
}

}  // namespace tutti
