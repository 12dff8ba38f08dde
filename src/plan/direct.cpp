// direct.cpp: everyone sends at once to whom it concerns.
// SPDX-License-Identifier: Apache-2.0
//
// One step, but up to p−1 messages at the busiest rank: for few ranks, or where nothing can be shared anyway. Peers are
// visited from the next rank on, so that not everyone begins with rank 0.
#include "plan/algorithms.hpp"

namespace tutti::algorithm {

// steps 1, bytes n(p−1)/p
void direct_all_gather(PlanBuilder& b) {
  const RotatedRanks ring(b.spec());
  const Blocks blocks = blocks_of(b.spec());
  for (int i = 1; i < ring.size; ++i) {
    b.send(ring.rank(ring.me + i), b.input());
    b.recv(ring.rank(ring.me - i), blocks.block(b.output(), ring.wrap(ring.me - i)));
  }
  b.copy(b.input(), blocks.block(b.output(), ring.me));
}

// steps 1, bytes n/p (the root receives n(p−1)/p)
void direct_gather(PlanBuilder& b) {
  const Spec& spec = b.spec();
  if (spec.rank != spec.root) {
    b.send(spec.root, b.input());
    return;
  }
  const Blocks blocks = blocks_of(spec);
  for (int i = 1; i < spec.size; ++i) {
    const int peer = (spec.root + i) % spec.size;
    b.recv(peer, blocks.block(b.output(), peer));
  }
  b.copy(b.input(), blocks.block(b.output(), spec.rank));
}

// steps 1, bytes n(p−1)/p at the root
void direct_scatter(PlanBuilder& b) {
  const Spec& spec = b.spec();
  if (spec.rank != spec.root) {
    b.recv(spec.root, b.output());
    return;
  }
  const Blocks blocks = blocks_of(spec);
  for (int i = 1; i < spec.size; ++i) {
    const int peer = (spec.root + i) % spec.size;
    b.send(peer, blocks.block(b.input(), peer));
  }
  b.copy(blocks.block(b.input(), spec.rank), b.output());
}

// steps 1, bytes n(p−1)/p. In place, what arrives waits in scratch until what was there has left.
void direct_all_to_all(PlanBuilder& b) {
  const RotatedRanks ring(b.spec());
  const Blocks out = send_blocks_of(b.spec()), in = recv_blocks_of(b.spec());
  const Piece landing = b.spec().in_place ? b.scratch(in.total()) : b.output();
  for (int i = 1; i < ring.size; ++i) {
    const int to = ring.wrap(ring.me + i), from = ring.wrap(ring.me - i);
    b.send(to, out.block(b.input(), to));
    b.recv(from, in.block(landing, from));
  }
  b.copy(out.block(b.input(), ring.me), in.block(landing, ring.me));
  if (!b.spec().in_place) return;
  for (int i = 0; i < ring.size; ++i) b.copy(in.block(landing, i), in.block(b.output(), i));
}

// steps 1, bytes n. Zeros where nothing arrives; in place through scratch, as above.
void direct_permute(PlanBuilder& b) {
  const Spec& spec = b.spec();
  int source = -1;
  for (const auto& [from, to] : spec.pairs) {
    if (to == spec.rank) source = from;
    if (from == spec.rank && to != spec.rank) b.send(to, b.input());
  }
  if (source < 0) {
    b.zero(b.output());
  } else if (source == spec.rank) {
    b.copy(b.input(), b.output());
  } else if (spec.in_place) {
    const Piece landing = b.scratch(spec.count);
    b.recv(source, landing);
    b.copy(landing, b.output());
  } else {
    b.recv(source, b.output());
  }
}

}  // namespace tutti::algorithm
