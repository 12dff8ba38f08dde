// bruck.cpp: all-to-all in ⌈log₂ p⌉ rounds, for many ranks and small blocks (Bruck).
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: *way* j stands for the block that has to travel j ranks onward: at first the own block for rank + j. In the
// round of bit k every way whose bit k is set goes on by 2ᵏ ranks, all of them in one message; after all rounds way j holds
// the block that came from rank − j.
#include <vector>

#include "plan/algorithms.hpp"

namespace tutti::algorithm {

namespace {

// Copies pieces to consecutive places; neighbours in memory are copied in one step.
class Packer {
 public:
  Packer(PlanBuilder& b, Piece to) : b_(b), to_(to) {}
  void add(Piece from) {
    if (run_.count > 0 && run_.space == from.space && run_.offset + run_.count == from.offset) {
      run_.count += from.count;
      return;
    }
    flush();
    run_ = from;
  }
  void flush() {
    b_.copy(run_, to_.part(filled_, run_.count));
    filled_ += run_.count;
    run_.count = 0;
  }

 private:
  PlanBuilder& b_;
  Piece to_, run_{};
  std::int64_t filled_ = 0;
};

}  // namespace

// steps ⌈log₂ p⌉, bytes about (n/2)⌈log₂ p⌉
void bruck_all_to_all(PlanBuilder& b) {
  const RotatedRanks ring(b.spec());
  const Blocks blocks = blocks_of(b.spec());
  const std::int64_t count = b.spec().count;
  std::vector<Piece> at(static_cast<std::size_t>(ring.size));  // where each way's block is now
  for (int way = 0; way < ring.size; ++way) at[std::size_t(way)] = blocks.block(b.input(), ring.wrap(ring.me + way));
  const std::int64_t most = ring.size / 2 * count;  // no bit is set in more of the ways
  const Piece packs[2] = {b.scratch(most), b.scratch(ring.size > 2 ? most : 0)};
  int round = 0;
  for (int bit = 1; bit < ring.size; bit *= 2, ++round) {
    std::int64_t going = 0;
    Packer packer(b, packs[round % 2]);
    for (int way = bit; way < ring.size; ++way) {
      if ((way & bit) == 0) continue;
      packer.add(at[std::size_t(way)]);
      going += count;
    }
    packer.flush();
    b.send(ring.rank(ring.me + bit), packs[round % 2].part(0, going));
    const Piece arrived = b.scratch(going);
    b.recv(ring.rank(ring.me - bit), arrived);
    std::int64_t taken = 0;
    for (int way = bit; way < ring.size; ++way) {
      if ((way & bit) == 0) continue;
      at[std::size_t(way)] = arrived.part(taken, count);
      taken += count;
    }
  }
  for (int way = 0; way < ring.size; ++way) {
    b.copy(at[std::size_t(way)], blocks.block(b.output(), ring.wrap(ring.me - way)));
  }
}

}  // namespace tutti::algorithm
