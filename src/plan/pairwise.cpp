// pairwise.cpp: all-to-all and reduce-scatter in rounds; in each, every rank sends to one peer and receives from one.
// SPDX-License-Identifier: Apache-2.0
//
// In round i a rank sends to rank + i and receives from rank − i. A round starts when the one before last is over, so that
// at most two messages per rank are under way in each direction and no receiver is flooded.
#include <vector>

#include "plan/algorithms.hpp"

namespace tutti::algorithm {

namespace {

// Holds back a round until the one two before it has ended.
class Rounds {
 public:
  explicit Rounds(PlanBuilder& b) : b_(b) {}
  void start() {
    current_ = 1 - current_;
    before_last_[0] = ends_[current_][0];
    before_last_[1] = ends_[current_][1];
  }
  void send(int peer, Piece from) { ends_[current_][0] = (wait(), b_.send(peer, from)); }
  void recv(int peer, Piece to) { ends_[current_][1] = (wait(), b_.recv(peer, to)); }

 private:
  void wait() {
    b_.after(before_last_[0]);
    b_.after(before_last_[1]);
  }
  PlanBuilder& b_;
  int current_ = 0;
  std::uint32_t ends_[2][2] = {{PlanBuilder::no_step, PlanBuilder::no_step},
                               {PlanBuilder::no_step, PlanBuilder::no_step}};
  std::uint32_t before_last_[2] = {PlanBuilder::no_step, PlanBuilder::no_step};
};

}  // namespace

// steps p−1, bytes n(p−1)/p. In place, what arrives waits in scratch until what was there has left.
void pairwise_all_to_all(PlanBuilder& b) {
  const RotatedRanks ring(b.spec());
  const Blocks out = send_blocks_of(b.spec()), in = recv_blocks_of(b.spec());
  const bool in_place = b.spec().in_place;
  const Piece landing = in_place ? b.scratch(in.total()) : b.output();
  Rounds rounds(b);
  for (int i = 1; i < ring.size; ++i) {
    const int to = ring.wrap(ring.me + i), from = ring.wrap(ring.me - i);
    rounds.start();
    rounds.send(to, out.block(b.input(), to));
    rounds.recv(from, in.block(landing, from));
  }
  b.copy(out.block(b.input(), ring.me), in.block(landing, ring.me));
  if (!in_place) return;
  for (int i = 0; i < ring.size; ++i) b.copy(in.block(landing, i), in.block(b.output(), i));
}

// Everything that arrives waits for its turn. The own block may lie where the result goes, so the sum is kept apart until it is the last.
static void pairwise_reduce_scatter_in_rank_order(PlanBuilder& b) {
  const RotatedRanks ring(b.spec());
  const Blocks blocks = blocks_of(b.spec());
  const std::int64_t count = blocks.count(ring.me);
  std::vector<Piece> parts;
  for (int rank = 0; rank < ring.size; ++rank)
    parts.push_back(rank == ring.me ? blocks.block(b.input(), ring.me) : b.scratch(count));
  const Piece sum = b.scratch(count);
  Rounds rounds(b);
  for (int i = 1; i < ring.size; ++i) {
    const int to = ring.wrap(ring.me + i), from = ring.wrap(ring.me - i);
    rounds.start();
    rounds.send(to, blocks.block(b.input(), to));
    rounds.recv(from, parts[std::size_t(from)]);
  }
  for (int rank = 1; rank < ring.size; ++rank)
    b.reduce(rank == 1 ? parts[0] : sum, parts[std::size_t(rank)], rank + 1 == ring.size ? b.output() : sum);
  b.finish(b.output());
}

// steps p−1, bytes n(p−1)/p
void pairwise_reduce_scatter(PlanBuilder& b) {
  if (b.spec().in_rank_order) return pairwise_reduce_scatter_in_rank_order(b);
  const RotatedRanks ring(b.spec());
  const Blocks blocks = blocks_of(b.spec());
  const std::int64_t count = blocks.count(ring.me);
  const Piece own = blocks.block(b.input(), ring.me);
  const Piece slots[2] = {b.scratch(count), b.scratch(ring.size > 2 ? count : 0)};
  Rounds rounds(b);
  for (int i = 1; i < ring.size; ++i) {
    const int to = ring.wrap(ring.me + i), from = ring.wrap(ring.me - i);
    rounds.start();
    rounds.send(to, blocks.block(b.input(), to));
    rounds.recv(from, slots[(i - 1) % 2]);
    b.reduce(slots[(i - 1) % 2], i == 1 ? own : b.output(), b.output());
  }
  b.finish(b.output());
}

}  // namespace tutti::algorithm
