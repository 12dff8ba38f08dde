// ring.cpp: all-reduce, reduce-scatter and all-gather around a ring.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: every rank sends to its right neighbour (rank + 1) and receives from its left one. A block travels once
// around the ring; on its way through reduce-scatter each rank adds its own contribution. A partial sum lives in one of two
// slots of scratch: while one is being sent, the next block arrives in the other.
#include "plan/algorithms.hpp"

namespace tutti::algorithm {

namespace {

// Block i of `source` becomes complete at rank i, in `result`.
void reduce_scatter_phase(PlanBuilder& b, const Blocks& blocks, Piece source, Piece result) {
  const RotatedRanks ring(b.spec());
  const std::int64_t segment = b.spec().segment;
  const int right = ring.rank(ring.me + 1), left = ring.rank(ring.me - 1);
  const Piece slots[2] = {b.scratch(blocks.longest()), b.scratch(ring.size > 2 ? blocks.longest() : 0)};
  for (int step = 0; step + 1 < ring.size; ++step) {
    const int leaving = ring.wrap(ring.me - step - 1), arriving = ring.wrap(ring.me - step - 2 + ring.size);
    const Piece outgoing = step == 0 ? blocks.block(source, leaving) : slots[(step + 1) % 2];
    for_each_segment(blocks.count(leaving), segment,
                     [&](std::int64_t at, std::int64_t count) { b.send(right, outgoing.part(at, count)); });
    const bool last = step + 2 == ring.size;
    for_each_segment(blocks.count(arriving), segment, [&](std::int64_t at, std::int64_t count) {
      const Piece slot = slots[step % 2].part(at, count);
      b.recv(left, slot);
      b.reduce(slot, blocks.block(source, arriving).part(at, count), last ? result.part(at, count) : slot);
    });
  }
}

// `own` is this rank's block; in the end `whole` has all of them, except that nobody writes this rank's there.
void all_gather_phase(PlanBuilder& b, const Blocks& blocks, Piece own, Piece whole) {
  const RotatedRanks ring(b.spec());
  const int right = ring.rank(ring.me + 1), left = ring.rank(ring.me - 1);
  for (int step = 0; step + 1 < ring.size; ++step) {
    const int leaving = ring.wrap(ring.me - step), arriving = ring.wrap(ring.me - step - 1);
    const Piece outgoing = step == 0 ? own : blocks.block(whole, leaving);
    for_each_segment(blocks.count(leaving), b.spec().segment,
                     [&](std::int64_t at, std::int64_t count) { b.send(right, outgoing.part(at, count)); });
    for_each_segment(blocks.count(arriving), b.spec().segment, [&](std::int64_t at, std::int64_t count) {
      b.recv(left, blocks.block(whole, arriving).part(at, count));
    });
  }
}

}  // namespace

// steps 2(p−1), bytes 2n(p−1)/p
void ring_all_reduce(PlanBuilder& b) {
  const Blocks blocks = Blocks::split(b.spec().count, b.spec().size);
  const Piece own = blocks.block(b.output(), b.spec().rank);
  reduce_scatter_phase(b, blocks, b.input(), own);
  b.finish(own);
  all_gather_phase(b, blocks, own, b.output());
}

// steps p−1, bytes n(p−1)/p
void ring_reduce_scatter(PlanBuilder& b) {
  reduce_scatter_phase(b, blocks_of(b.spec()), b.input(), b.output());
  b.finish(b.output());
}

// steps p−1, bytes n(p−1)/p
void ring_all_gather(PlanBuilder& b) {
  const Blocks blocks = blocks_of(b.spec());
  all_gather_phase(b, blocks, b.input(), b.output());
  b.copy(b.input(), blocks.block(b.output(), b.spec().rank));
}

}  // namespace tutti::algorithm
