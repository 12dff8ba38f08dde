// fold.hpp: reduces any number of ranks to a power of two.
// SPDX-License-Identifier: Apache-2.0
//
// Of p ranks, the first 2·extra stand in pairs (even, odd), where extra = p − power. The even one of a pair hands its
// part to the odd one and is given the result in the end; the odd ones and the rest take part, at positions 0 …
// power−1. Positions are in the order of ranks, so that the ranks behind a run of positions are a run of ranks.
#pragma once

#include "plan/builder.hpp"
#include "plan/layout.hpp"

namespace tutti {

struct Fold {
  int rank, power, extra;
  explicit Fold(const Spec& spec) : rank(spec.rank), power(floor_power_of_two(spec.size)), extra(spec.size - power) {}

  [[nodiscard]] bool paired() const { return rank < 2 * extra; }
  [[nodiscard]] bool steps_aside() const { return paired() && rank % 2 == 0; }
  [[nodiscard]] int partner() const { return rank ^ 1; }
  [[nodiscard]] int position() const { return paired() ? rank / 2 : rank - extra; }
  /// The rank that stands at `position`.
  [[nodiscard]] int rank_at(int position) const { return position < extra ? 2 * position + 1 : position + extra; }
  /// The first rank behind `position`: the ranks behind positions [a, b) are [first_rank(a), first_rank(b)).
  [[nodiscard]] int first_rank(int position) const { return position < extra ? 2 * position : position + extra; }
};

/// Partial results of two adjacent runs of ranks, reduced with the lower ranks' first, so that both sides get the same.
inline void reduce_in_rank_order(PlanBuilder& b, bool own_is_lower, Piece own, Piece other, Piece to) {
  if (own_is_lower) {
    b.reduce(own, other, to);
  } else {
    b.reduce(other, own, to);
  }
}

}  // namespace tutti
