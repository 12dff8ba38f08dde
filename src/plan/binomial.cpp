// binomial.cpp: broadcast, reduce, gather and scatter along a binomial tree.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: a position is a rank counted from the root. The *reach* of a position is its lowest set bit (for the root the
// next power of two): its subtree is the positions [me, me + reach), its parent me − reach, its children me + reach/2,
// me + reach/4, …, me + 1 as far as they exist. Blocks of a subtree are consecutive positions; as ranks they may run past
// the last rank and go on at rank 0, where the message is cut in two, so that the root needs no reordering.
#include "plan/algorithms.hpp"

namespace tutti::algorithm {

namespace {

int reach_of(int position, int size) { return position == 0 ? 1 << ceil_log2(size) : position & -position; }

// Blocks in the order of positions: what an inner rank holds for its subtree.
class Subtree {
 public:
  Subtree(const RotatedRanks& ranks, const Blocks& blocks) : ranks_(ranks), blocks_(blocks) {}

  [[nodiscard]] int reach() const { return reach_of(ranks_.me, ranks_.size); }
  [[nodiscard]] int end(int position) const {
    return std::min(ranks_.size, position + reach_of(position, ranks_.size));
  }
  [[nodiscard]] std::int64_t count(int first, int last) const {
    const int cut = wrap_at();
    if (first >= cut || last <= cut) return rank_range(first, last);
    return rank_range(first, cut) + rank_range(cut, last);
  }
  // Visits the one or two runs of consecutive ranks in positions [first, last).
  template <class Visit>
  void for_each_run(int first, int last, Visit visit) const {
    const int cut = wrap_at();
    if (first < cut && last > cut) {
      visit(first, cut);
      visit(cut, last);
    } else {
      visit(first, last);
    }
  }
  // Positions [first, last), a run, in an array ordered by rank.
  [[nodiscard]] Piece by_rank(Piece whole, int first, int last) const {
    return whole.part(blocks_.offset(ranks_.rank(first)), rank_range(first, last));
  }
  // The same in scratch that holds this rank's subtree ordered by position.
  [[nodiscard]] Piece by_position(Piece mine, int first, int last) const {
    return mine.part(count(ranks_.me, first), rank_range(first, last));
  }

 private:
  [[nodiscard]] int wrap_at() const { return ranks_.size - ranks_.origin; }  // the position of rank 0
  [[nodiscard]] std::int64_t rank_range(int first, int last) const {
    if (first == last) return 0;
    return blocks_.offset(ranks_.rank(last - 1) + 1) - blocks_.offset(ranks_.rank(first));
  }
  const RotatedRanks& ranks_;
  const Blocks& blocks_;
};

}  // namespace

// steps ⌈log₂ p⌉, bytes n⌈log₂ p⌉ at the root
void binomial_broadcast(PlanBuilder& b) {
  const RotatedRanks ranks(b.spec(), b.spec().root);
  const int reach = reach_of(ranks.me, ranks.size);
  const Piece source = ranks.me == 0 ? b.input() : b.output();
  if (ranks.me != 0) b.recv(ranks.rank(ranks.me - reach), b.output());
  for (int step = reach / 2; step > 0; step /= 2) {
    if (ranks.me + step < ranks.size) b.send(ranks.rank(ranks.me + step), source);
  }
  if (ranks.me == 0) b.copy(b.input(), b.output());
}

// steps ⌈log₂ p⌉ (+1 in rank order, unless rank 0 is the root), bytes n, reduced n⌈log₂ p⌉ at the root. Two slots, so that one child's part arrives while another's is added.
void binomial_reduce(PlanBuilder& b) {
  const bool in_rank_order = b.spec().in_rank_order;  // then rank 0 gets the result first
  const RotatedRanks ranks(b.spec(), in_rank_order ? 0 : b.spec().root);
  const int reach = reach_of(ranks.me, ranks.size);
  const std::int64_t count = b.spec().count;
  const bool on_top = ranks.me == 0, at_root = b.spec().rank == b.spec().root;
  const int children = ceil_log2(std::min(reach, ranks.size - ranks.me));
  const Piece slots[2] = {b.scratch(children > 0 ? count : 0), b.scratch(children > 1 ? count : 0)};
  const Piece sum = on_top && at_root ? b.output() : b.scratch(children > 0 ? count : 0);
  for (int child = 0; child < children; ++child) {
    const Piece slot = slots[child % 2];
    b.recv(ranks.rank(ranks.me + (1 << child)), slot);
    b.reduce(child == 0 ? b.input() : sum, slot, sum);
  }
  if (on_top) {
    b.finish(sum);
    if (!at_root) b.send(b.spec().root, sum);
  } else {
    b.send(ranks.rank(ranks.me - reach), children == 0 ? b.input() : sum);
    if (at_root) b.recv(0, b.output());
  }
}

// steps ⌈log₂ p⌉, bytes n/2 at the root's largest child (the root receives n(p−1)/p)
void binomial_gather(PlanBuilder& b) {
  const Blocks blocks = blocks_of(b.spec());
  const RotatedRanks ranks(b.spec(), b.spec().root);
  const Subtree tree(ranks, blocks);
  const int me = ranks.me, end = tree.end(me);
  const bool at_root = me == 0, leaf = end == me + 1;
  const Piece mine = at_root || leaf ? Piece{} : b.scratch(tree.count(me, end));
  if (at_root) {
    b.copy(b.input(), tree.by_rank(b.output(), 0, 1));
  } else if (!leaf) {
    b.copy(b.input(), tree.by_position(mine, me, me + 1));
  }
  for (int step = 1; step < tree.reach() && me + step < ranks.size; step *= 2) {
    const int child = me + step;
    tree.for_each_run(child, tree.end(child), [&](int first, int last) {
      b.recv(ranks.rank(child), at_root ? tree.by_rank(b.output(), first, last) : tree.by_position(mine, first, last));
    });
  }
  if (at_root) return;
  tree.for_each_run(me, end, [&](int first, int last) {
    b.send(ranks.rank(me - tree.reach()), leaf ? b.input() : tree.by_position(mine, first, last));
  });
}

// steps ⌈log₂ p⌉, bytes n(p−1)/p at the root
void binomial_scatter(PlanBuilder& b) {
  const Blocks blocks = blocks_of(b.spec());
  const RotatedRanks ranks(b.spec(), b.spec().root);
  const Subtree tree(ranks, blocks);
  const int me = ranks.me, end = tree.end(me);
  const bool at_root = me == 0, leaf = end == me + 1;
  const Piece mine = at_root || leaf ? Piece{} : b.scratch(tree.count(me, end));
  if (!at_root) {
    tree.for_each_run(me, end, [&](int first, int last) {
      b.recv(ranks.rank(me - tree.reach()), leaf ? b.output() : tree.by_position(mine, first, last));
    });
  }
  for (int step = tree.reach() / 2; step > 0; step /= 2) {
    const int child = me + step;
    if (child >= ranks.size) continue;
    tree.for_each_run(child, tree.end(child), [&](int first, int last) {
      b.send(ranks.rank(child), at_root ? tree.by_rank(b.input(), first, last) : tree.by_position(mine, first, last));
    });
  }
  if (!leaf || at_root) {
    b.copy(at_root ? tree.by_rank(b.input(), 0, 1) : tree.by_position(mine, me, me + 1), b.output());
  }
}

}  // namespace tutti::algorithm
