// nodes.hpp: which ranks share a node, as the hierarchical algorithms see it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/layout.hpp"

namespace tutti {

/// What a rank without a part in a call gives, or gets.
inline constexpr Piece no_piece{};

/// Nodes are numbered by their lowest rank. A *lane* is one rank from each node: lane l holds the members with local index
/// l. There are as many lanes as the smallest node has ranks; on larger nodes the ranks beyond have no lane of their own
/// and share that of local index mod lanes.
struct Nodes {
  std::vector<std::vector<int>> members;  // per node, its ranks
  std::vector<int> node_of, local_of;     // per rank
  int lanes = 1;

  /// Where `first` is given, it comes first among the ranks of its node (the root does).
  explicit Nodes(const Spec& spec, int first = -1);

  [[nodiscard]] std::vector<int> lane(int index) const;
};

/// What the rank of `whole` asks for in `call`, one of its plan's: the choice counts how far its members are apart. in_place is left
/// to those who know where the pieces lie.
Spec spec_of(const Spec& whole, const SubCollective& call);
/// Where this rank's block starts among the blocks of all, in elements.
std::int64_t own_block(const Spec& spec);

}  // namespace tutti
