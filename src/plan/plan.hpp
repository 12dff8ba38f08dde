// plan.hpp: a collective as a value: what one rank does, step by step.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: a *piece* is a run of elements in one of three spaces: the caller's input, the caller's output, and
// scratch that the engine provides. A *block* is one rank's part of an array; a *segment* is a pipeline piece of a block.
//
// Invariants:
//  1. Steps stand in an order in which they could be run one after the other; `needs` and `unlocks` say which of them
//     may run at the same time (they follow from the pieces that steps read and write).
//  2. The k-th send from a to b in a's plan and the k-th receive from a in b's plan carry the same number k as their tag
//     and have the same count. Messages are matched by it, so sends may complete in any order.
//  3. The input is never written, unless the spec says that it is the output (in_place).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tutti/request.hpp>

namespace tutti {

enum class Space : std::uint8_t { input, output, scratch };

struct Piece {
  Space space = Space::input;
  std::int64_t offset = 0;  // elements
  std::int64_t count = 0;   // elements
  [[nodiscard]] Piece part(std::int64_t begin, std::int64_t length) const { return {space, offset + begin, length}; }
  friend bool operator==(const Piece&, const Piece&) = default;
};

enum class Act : std::uint8_t {
  send,      // `from` to `peer`
  recv,      // `to` from `peer`
  reduce,    // to = from ⊕ with, operands in that order; `to` may be one of them
  copy,      // to = from
  finish,    // `to` in place: the reduction's last touch (mean: divide by the group's size)
  zero,      // `to` = 0
  identity,  // `to` = the reduction's identity
  call,      // calls[call]: a request of its own on some of the ranks
};

struct Step {
  Act act = Act::copy;
  std::int32_t peer = -1;  // send, recv: rank in the group
  std::uint32_t tag = 0;   // send, recv: invariant 2
  std::int32_t call = -1;
  std::uint32_t needs = 0;  // steps that must end before this one starts
  Piece from{}, with{}, to{};
};

/// A request on a subgroup, atomic for prove, cost and the simulator, run by any backend.
struct SubCollective {
  Verb verb = Verb::barrier;
  std::vector<int> members{};          // ranks of the group; the subgroup's rank i is members[i]
  int root = 0;                        // rank in the subgroup
  std::vector<std::int64_t> counts{};  // per member, for the verbs with blocks; otherwise one entry: the count
  bool finish = false;
  Piece from{}, to{};
};

enum class Algorithm : std::uint8_t {
  automatic,
  direct,  // everyone talks to whom it concerns
  ring,
  recursive_doubling,
  halving_doubling,
  circulant,  // Bruck-like, any size in ⌈log₂ p⌉ rounds
  binomial,
  double_tree,  // two complementary binary trees, pipelined
  pairwise,
  bruck,           // all_to_all in ⌈log₂ p⌉ rounds
  chain,           // pipelined from rank to rank
  scatter_gather,  // broadcast: scatter, then all-gather; reduce: reduce-scatter, then gather
  dissemination,   // barrier
  hierarchical,
};

/// All that a plan depends on. Counts by verb: all_reduce, reduce, broadcast, scan, exscan, permute: the whole array;
/// all_gather, gather, reduce_scatter, scatter, all_to_all: one block (the same for all), unless `counts` has one per rank.
struct Spec {
  Verb verb = Verb::barrier;
  Algorithm algorithm = Algorithm::automatic;
  int rank = 0;
  int size = 1;
  int root = 0;
  std::int64_t count = 0;
  std::vector<std::int64_t> counts{};        // uneven; all_to_all: what this rank sends to each
  std::vector<std::int64_t> recv_counts{};   // uneven all_to_all: what this rank receives from each
  std::vector<std::pair<int, int>> pairs{};  // permute
  bool finish = false;  // a finish step goes over each reduced element, once, before it is passed on
  /// all_reduce, reduce, broadcast, scan, exscan, permute, all_to_all: input is output. all_gather, gather: the input is this
  /// rank's block of the output (gather: at the root). reduce_scatter, scatter: the output is this rank's block of the input.
  bool in_place = false;
  bool in_rank_order = false;  // operands are combined in the order of ranks: the reduction is not commutative
  std::int64_t segment = 0;    // elements of a pipeline segment; 0: do not cut
  std::vector<int> node_of{};  // node of each rank, for hierarchical; empty: all on one
  friend bool operator==(const Spec&, const Spec&) = default;
};

struct Plan {
  Spec spec;
  std::vector<Step> steps;
  std::vector<SubCollective> calls;
  std::vector<std::uint32_t> unlock_begin;  // steps.size() + 1: where in `unlocks` each step's successors start
  std::vector<std::uint32_t> unlocks;
  std::int64_t scratch_count = 0;  // elements
};

/// The plan of `spec.rank`. Throws InvalidArgument for an algorithm that does not serve the verb.
Plan make_plan(const Spec& spec);

}  // namespace tutti
