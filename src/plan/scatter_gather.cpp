// scatter_gather.cpp: broadcast as scatter and all-gather, reduce as reduce-scatter and gather (van de Geijn).
// SPDX-License-Identifier: Apache-2.0
//
// The array is cut into one block per position, counted from the root. A binomial tree spreads or collects the blocks;
// the blocks of a subtree are next to each other. The other phase is circulant.
#include "plan/algorithms.hpp"
#include "plan/circulant.hpp"

namespace tutti::algorithm {

namespace {

int reach_of(const RotatedRanks& ranks) { return ranks.me == 0 ? 1 << ceil_log2(ranks.size) : ranks.me & -ranks.me; }

}  // namespace

// steps 2⌈log₂ p⌉, bytes 2n(p−1)/p at the root
void scatter_gather_broadcast(PlanBuilder& b) {
  const RotatedRanks ranks(b.spec(), b.spec().root);
  const Blocks blocks = Blocks::split(b.spec().count, ranks.size);
  const int me = ranks.me, reach = reach_of(ranks);
  const auto end_of = [&](int position, int length) { return std::min(position + length, ranks.size); };
  if (me != 0) b.recv(ranks.rank(me - reach), blocks.range(b.output(), me, end_of(me, reach)));
  for (int step = reach / 2; step > 0; step /= 2) {
    if (me + step >= ranks.size) continue;
    b.send(ranks.rank(me + step), blocks.range(me == 0 ? b.input() : b.output(), me + step, end_of(me + step, step)));
  }
  if (me == 0) b.copy(blocks.block(b.input(), 0), blocks.block(b.output(), 0));
  circulant_all_gather_phase(b, ranks, blocks, b.output());
}

// steps 2⌈log₂ p⌉, bytes about 3n/2
void scatter_gather_reduce(PlanBuilder& b) {
  const RotatedRanks ranks(b.spec(), b.spec().root);
  const Blocks blocks = Blocks::split(b.spec().count, ranks.size);
  const int me = ranks.me, reach = reach_of(ranks), end = std::min(me + reach, ranks.size);
  // What this subtree collects, in the order of positions; at the root that is the output.
  const std::int64_t collected = blocks.offset(end) - blocks.offset(me);
  const Piece mine = me == 0 ? b.output() : b.scratch(collected);
  const auto range = [&](int first, int last) {
    return mine.part(blocks.offset(first) - blocks.offset(me), blocks.offset(last) - blocks.offset(first));
  };
  circulant_reduce_scatter_phase(b, ranks, blocks, b.input(), range(me, me + 1));
  b.finish(range(me, me + 1));
  for (int step = 1; step < reach && me + step < ranks.size; step *= 2) {
    b.recv(ranks.rank(me + step), range(me + step, std::min(me + 2 * step, ranks.size)));
  }
  if (me != 0) b.send(ranks.rank(me - reach), mine);
}

}  // namespace tutti::algorithm
