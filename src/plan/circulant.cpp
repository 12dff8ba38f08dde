// circulant.cpp: reduce-scatter, all-gather and all-reduce in ⌈log₂ p⌉ rounds for any size, with no byte too many.
// SPDX-License-Identifier: Apache-2.0
//
// After J. L. Träff's reduce-scatter on circulant graphs. Vocabulary: *index* j at position v stands for block v + j
// (mod p): index 0 is a position's own block. The *spans* are p, ⌈p/2⌉, ⌈p/4⌉, …, 1. In a round that goes from span s′ to
// span s, a position sends its indices [s, s′) to position v + s, for which they are the indices [0, s′ − s), and adds what
// it gets to its own. All-gather runs the rounds backwards.
// Indices that run past block p−1 go on at block 0: there a message is cut, so that nothing has to be copied together.
#include "plan/circulant.hpp"

#include <vector>

#include "plan/algorithms.hpp"

namespace tutti::algorithm {

namespace {

std::vector<int> spans_of(int size) {
  std::vector<int> spans{size};
  while (spans.back() > 1) spans.push_back((spans.back() + 1) / 2);
  return spans;
}

// Where the blocks of one position's indices lie.
class Indices {
 public:
  Indices(const Blocks& blocks, int position) : blocks_(blocks), position_(position), size_(blocks.parts()) {}

  // Elements of the indices [0, index).
  [[nodiscard]] std::int64_t offset(int index) const {
    const int end = position_ + index;
    if (end <= size_) return blocks_.offset(end) - blocks_.offset(position_);
    return blocks_.total() - blocks_.offset(position_) + blocks_.offset(end - size_);
  }
  [[nodiscard]] std::int64_t count(int first, int last) const { return offset(last) - offset(first); }
  // Indices [first, last), which do not run past the last block, in an array in the order of blocks.
  [[nodiscard]] Piece by_block(Piece whole, int first, int last) const {
    return whole.part(blocks_.offset((position_ + first) % size_), count(first, last));
  }
  // The same in an array in the order of indices.
  [[nodiscard]] Piece by_index(Piece whole, int first, int last) const {
    return whole.part(offset(first), count(first, last));
  }
  // Visits [first, last) cut where it runs past the last block, and at index `also_at`.
  template <class Visit>
  void for_each_run(int first, int last, int also_at, Visit visit) const {
    int cuts[2] = {size_ - position_, also_at};
    if (cuts[0] > cuts[1]) std::swap(cuts[0], cuts[1]);
    for (const int cut : cuts) {
      if (cut <= first || cut >= last) continue;
      visit(first, cut);
      first = cut;
    }
    visit(first, last);
  }

 private:
  const Blocks& blocks_;
  int position_, size_;
};

}  // namespace

void circulant_reduce_scatter_phase(PlanBuilder& b, const RotatedRanks& ranks, const Blocks& blocks, Piece source,
                                    Piece result) {
  const std::vector<int> spans = spans_of(ranks.size);
  const int half = ranks.size / 2;  // after the first round, the indices below it are partial sums
  const Indices mine(blocks, ranks.me);
  const Piece sums = b.scratch(mine.count(0, half));
  const auto arriving = [&](std::size_t round) {
    return round + 1 < spans.size() ? spans[round] - spans[round + 1] : 0;
  };
  const Piece landing[2] = {b.scratch(mine.count(0, arriving(2))), b.scratch(mine.count(0, arriving(1)))};
  for (std::size_t round = 0; round + 1 < spans.size(); ++round) {
    const int from_span = spans[round], to_span = spans[round + 1], reduced_below = round == 0 ? 0 : half;
    const bool last_round = to_span == 1;
    mine.for_each_run(to_span, from_span, reduced_below, [&](int first, int last) {
      const bool partial = first < reduced_below;
      b.send(ranks.rank(ranks.me + to_span),
             partial ? mine.by_index(sums, first, last) : mine.by_block(source, first, last));
    });
    // The sender cuts at its own wrap and at the same index; both follow from its position.
    const Indices theirs(blocks, ranks.wrap(ranks.me - to_span));
    theirs.for_each_run(to_span, from_span, reduced_below, [&](int their_first, int their_last) {
      const int first = their_first - to_span, last = their_last - to_span;
      const Piece arrived = mine.by_index(round == 0 ? sums : landing[round % 2], first, last);
      const Piece own = round == 0 ? mine.by_block(source, first, last) : mine.by_index(sums, first, last);
      b.recv(ranks.rank(ranks.me - to_span), arrived);
      b.reduce(arrived, own, last_round ? result : mine.by_index(sums, first, last));
    });
  }
}

void circulant_all_gather_phase(PlanBuilder& b, const RotatedRanks& ranks, const Blocks& blocks, Piece whole) {
  const std::vector<int> spans = spans_of(ranks.size);
  const Indices mine(blocks, ranks.me);
  for (std::size_t round = spans.size() - 1; round > 0; --round) {
    const int to_span = spans[round - 1], from_span = spans[round];
    mine.for_each_run(0, to_span - from_span, 0, [&](int first, int last) {
      b.send(ranks.rank(ranks.me - from_span), mine.by_block(whole, first, last));
    });
    mine.for_each_run(from_span, to_span, 0, [&](int first, int last) {
      b.recv(ranks.rank(ranks.me + from_span), mine.by_block(whole, first, last));
    });
  }
}

// steps ⌈log₂ p⌉, bytes n(p−1)/p
void circulant_reduce_scatter(PlanBuilder& b) {
  circulant_reduce_scatter_phase(b, RotatedRanks(b.spec()), blocks_of(b.spec()), b.input(), b.output());
  b.finish(b.output());
}

// steps ⌈log₂ p⌉, bytes n(p−1)/p
void circulant_all_gather(PlanBuilder& b) {
  const Blocks blocks = blocks_of(b.spec());
  b.copy(b.input(), blocks.block(b.output(), b.spec().rank));
  circulant_all_gather_phase(b, RotatedRanks(b.spec()), blocks, b.output());
}

// steps 2⌈log₂ p⌉, bytes 2n(p−1)/p
void circulant_all_reduce(PlanBuilder& b) {
  const Blocks blocks = Blocks::split(b.spec().count, b.spec().size);
  const Piece own = blocks.block(b.output(), b.spec().rank);
  circulant_reduce_scatter_phase(b, RotatedRanks(b.spec()), blocks, b.input(), own);
  b.finish(own);
  circulant_all_gather_phase(b, RotatedRanks(b.spec()), blocks, b.output());
}

}  // namespace tutti::algorithm
