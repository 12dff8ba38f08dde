// halving_doubling.cpp: reduce-scatter by recursive halving, and all-reduce with recursive doubling after it (Rabenseifner).
// SPDX-License-Identifier: Apache-2.0
//
// In each round a rank exchanges half of what it still works on with one other: it keeps one half and adds what the other
// had for it. All-reduce begins with adjacent ranks, which exchange most and are likely on one node; reduce-scatter has to begin
// with the farthest, so that the halves end at the ranks they belong to. Sizes that are no power of two are folded.
#include <vector>

#include "plan/algorithms.hpp"
#include "plan/fold.hpp"

namespace tutti::algorithm {

namespace {

struct Run {
  int first, last;  // blocks [first, last)
};

}  // namespace

// steps 2⌊log₂ p⌋ (+2 unless p is a power of two), bytes 2n(q−1)/q (+n), q the power of two
void halving_doubling_all_reduce(PlanBuilder& b) {
  const Fold fold(b.spec());
  if (fold.steps_aside()) {
    b.send(fold.partner(), b.input());
    b.recv(fold.partner(), b.output());
    return;
  }
  const Blocks blocks = Blocks::split(b.spec().count, fold.power);
  const Piece landing = b.scratch(b.spec().count);
  Piece value = b.input();
  if (fold.paired()) {
    b.recv(fold.partner(), landing);
    b.reduce(landing, value, b.output());
    value = b.output();
  }
  Run kept{0, fold.power};
  std::vector<Run> given;  // per round, what the other one keeps
  for (int bit = 1; bit < fold.power; bit *= 2) {
    const int other = fold.position() ^ bit, middle = (kept.first + kept.last) / 2;
    const bool lower = fold.position() < other;
    given.push_back(lower ? Run{middle, kept.last} : Run{kept.first, middle});
    kept = lower ? Run{kept.first, middle} : Run{middle, kept.last};
    b.send(fold.rank_at(other), blocks.range(value, given.back().first, given.back().last));
    const Piece arrived = blocks.range(landing, kept.first, kept.last);
    b.recv(fold.rank_at(other), arrived);
    reduce_in_rank_order(b, lower, blocks.range(value, kept.first, kept.last), arrived,
                         blocks.range(b.output(), kept.first, kept.last));
    value = b.output();
  }
  b.finish(blocks.range(b.output(), kept.first, kept.last));
  for (int bit = fold.power / 2; bit > 0; bit /= 2) {
    const int other = fold.rank_at(fold.position() ^ bit);
    b.send(other, blocks.range(b.output(), kept.first, kept.last));
    b.recv(other, blocks.range(b.output(), given.back().first, given.back().last));
    kept = {std::min(kept.first, given.back().first), std::max(kept.last, given.back().last)};
    given.pop_back();
  }
  if (fold.paired()) b.send(fold.partner(), b.output());
}

// steps ⌊log₂ p⌋ (+2), bytes n(q−1)/q (+n)
void halving_doubling_reduce_scatter(PlanBuilder& b) {
  const Fold fold(b.spec());
  if (fold.steps_aside()) {
    b.send(fold.partner(), b.input());
    b.recv(fold.partner(), b.output());
    return;
  }
  const Blocks blocks = blocks_of(b.spec());
  const auto range = [&](Piece whole, Run run) {  // run: positions
    return blocks.range(whole, fold.first_rank(run.first), fold.first_rank(run.last));
  };
  const Piece sum = b.scratch(blocks.total()), landing = b.scratch(blocks.total());
  Piece value = b.input();
  if (fold.paired()) {
    b.recv(fold.partner(), landing);
    b.reduce(landing, value, sum);
    value = sum;
  }
  Run kept{0, fold.power};
  for (int bit = fold.power / 2; bit > 0; bit /= 2) {
    const int other = fold.position() ^ bit, middle = kept.first + bit;
    const bool lower = fold.position() < other;
    b.send(fold.rank_at(other), range(value, lower ? Run{middle, kept.last} : Run{kept.first, middle}));
    kept = lower ? Run{kept.first, middle} : Run{middle, kept.last};
    b.recv(fold.rank_at(other), range(landing, kept));
    const bool last = bit == 1 && !fold.paired();
    reduce_in_rank_order(b, lower, range(value, kept), range(landing, kept), last ? b.output() : range(sum, kept));
    value = sum;
  }
  if (!fold.paired()) {
    b.finish(b.output());
    return;
  }
  b.finish(range(sum, kept));
  b.send(fold.partner(), blocks.block(sum, fold.partner()));
  b.copy(blocks.block(sum, b.spec().rank), b.output());
}

}  // namespace tutti::algorithm
