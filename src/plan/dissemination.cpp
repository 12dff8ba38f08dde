// dissemination.cpp: barrier.
// SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms.hpp"

namespace tutti::algorithm {

// steps ⌈log₂ p⌉, bytes 0. In round k a rank tells rank + 2ᵏ what it has heard so far; after the last round that is everyone.
void dissemination_barrier(PlanBuilder& b) {
  const Circle ring(b.spec());
  std::uint32_t heard = PlanBuilder::no_step;
  for (int distance = 1; distance < ring.size; distance *= 2) {
    b.after(heard);
    b.send(ring.rank(ring.me + distance), Piece{});
    heard = b.recv(ring.rank(ring.me - distance), Piece{});
  }
}

}  // namespace tutti::algorithm
