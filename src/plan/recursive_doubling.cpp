// recursive_doubling.cpp: all-reduce, all-gather, scan and exscan in rounds in which everyone's knowledge doubles.
// SPDX-License-Identifier: Apache-2.0
//
// All-reduce and all-gather exchange with the position that differs in one bit, the lowest first; sizes that are no power
// of two are folded (fold.hpp). Scan and exscan send to rank + 2ᵏ and need no folding.
#include "plan/algorithms.hpp"
#include "plan/fold.hpp"

namespace tutti::algorithm {

// steps ⌊log₂ p⌋ (+2 unless p is a power of two), bytes n⌊log₂ p⌋ (+n)
void recursive_doubling_all_reduce(PlanBuilder& b) {
  const Fold fold(b.spec());
  if (fold.steps_aside()) {
    b.send(fold.partner(), b.input());
    b.recv(fold.partner(), b.output());
    return;
  }
  const std::int64_t count = b.spec().count;
  const Piece slots[2] = {b.scratch(count), b.scratch(count)};
  Piece value = b.input();
  int round = 0;
  if (fold.paired()) {
    b.recv(fold.partner(), slots[0]);
    b.reduce(slots[0], value, b.output());
    value = b.output();
    ++round;
  }
  for (int bit = 1; bit < fold.power; bit *= 2, ++round) {
    const int other = fold.position() ^ bit;
    b.send(fold.rank_at(other), value);
    b.recv(fold.rank_at(other), slots[round % 2]);
    reduce_in_rank_order(b, fold.position() < other, value, slots[round % 2], b.output());
    value = b.output();
  }
  b.finish(b.output());
  if (fold.paired()) b.send(fold.partner(), b.output());
}

// steps ⌊log₂ p⌋ (+2), bytes n(p−1)/p (about 2n with folding)
void recursive_doubling_all_gather(PlanBuilder& b) {
  const Fold fold(b.spec());
  const Blocks blocks = blocks_of(b.spec());
  const int me = b.spec().rank, size = b.spec().size;
  const Piece whole = b.output(), own = blocks.block(whole, me);
  if (fold.steps_aside()) {
    b.send(fold.partner(), b.input());
    b.recv(fold.partner(), blocks.range(whole, 0, me));
    b.recv(fold.partner(), blocks.range(whole, me + 1, size));
    b.copy(b.input(), own);
    return;
  }
  b.copy(b.input(), own);
  if (fold.paired()) b.recv(fold.partner(), blocks.block(whole, fold.partner()));
  const auto behind = [&](int position, int bit) {  // the blocks that a position knows before the round of `bit`
    const int first = position & ~(bit - 1);
    return blocks.range(whole, fold.first_rank(first), fold.first_rank(first + bit));
  };
  for (int bit = 1; bit < fold.power; bit *= 2) {
    const int other = fold.position() ^ bit;
    b.send(fold.rank_at(other), bit == 1 && !fold.paired() ? b.input() : behind(fold.position(), bit));
    b.recv(fold.rank_at(other), behind(other, bit));
  }
  if (!fold.paired()) return;
  b.send(fold.partner(), blocks.range(whole, 0, fold.partner()));
  b.send(fold.partner(), blocks.range(whole, fold.partner() + 1, size));
}

// steps ⌈log₂ p⌉, bytes n⌈log₂ p⌉. Before round k a rank holds the sum of the 2ᵏ ranks up to itself.
void recursive_doubling_scan(PlanBuilder& b) {
  const int me = b.spec().rank, size = b.spec().size;
  const Piece slots[2] = {b.scratch(b.spec().count), b.scratch(b.spec().count)};
  Piece value = b.input();
  int round = 0;
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    if (me + distance < size) b.send(me + distance, value);
    if (me - distance < 0) continue;
    b.recv(me - distance, slots[round % 2]);
    b.reduce(slots[round % 2], value, b.output());
    value = b.output();
  }
  if (me == 0) b.copy(b.input(), b.output());
  b.finish(b.output());
}

// steps ⌈log₂ p⌉, bytes n⌈log₂ p⌉. As scan, beside the sum of the ranks before this one, which is the result.
void recursive_doubling_exscan(PlanBuilder& b) {
  const int me = b.spec().rank, size = b.spec().size;
  const std::int64_t count = b.spec().count;
  const Piece slots[2] = {b.scratch(count), b.scratch(count)}, with_own = b.scratch(count);
  Piece value = b.input();
  int round = 0;
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    if (me + distance < size) b.send(me + distance, value);
    if (me - distance < 0) continue;
    const Piece slot = slots[round % 2];
    b.recv(me - distance, slot);
    if (me + 2 * distance < size) {
      b.reduce(slot, value, with_own);
      value = with_own;
    }
    if (distance == 1) {
      b.copy(slot, b.output());
    } else {
      b.reduce(slot, b.output(), b.output());
    }
  }
  if (me == 0) {
    b.identity(b.output());
  } else {
    b.finish(b.output());
  }
}

}  // namespace tutti::algorithm
