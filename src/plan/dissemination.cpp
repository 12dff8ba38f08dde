// dissemination.cpp: barrier.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "plan/algorithms.hpp"

namespace tutti::algorithm {

// steps ⌈log₂ p⌉, bytes 0. In round k a rank tells rank + 2ᵏ what it has heard so far; after the last round that is everyone.
void dissemination_barrier(PlanBuilder& b) {
  const RotatedRanks ring(b.spec());
  // A later round may be heard before an earlier one, whose sender is late: what a rank tells must include them all.
  std::vector<std::uint32_t> heard;
  for (int distance = 1; distance < ring.size; distance *= 2) {
    for (const std::uint32_t round : heard) b.after(round);
    b.send(ring.rank(ring.me + distance), Piece{});
    heard.push_back(b.recv(ring.rank(ring.me - distance), Piece{}));
  }
}

}  // namespace tutti::algorithm
