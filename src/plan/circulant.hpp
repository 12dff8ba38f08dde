// circulant.hpp: the two phases of the circulant algorithms, for those that are made of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/builder.hpp"
#include "plan/layout.hpp"

namespace tutti::algorithm {

/// Block i of every `source`, reduced, ends in `result` at position i of the circle.
void circulant_reduce_scatter_phase(PlanBuilder& b, const RotatedRanks& ranks, const Blocks& blocks, Piece source,
                                    Piece result);
/// Position i contributes block i, which already lies in `whole`; in the end every position has all blocks there.
void circulant_all_gather_phase(PlanBuilder& b, const RotatedRanks& ranks, const Blocks& blocks, Piece whole);

}  // namespace tutti::algorithm
