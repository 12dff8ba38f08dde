// chain.cpp: broadcast, reduce, scan and exscan from rank to rank, segment by segment.
// SPDX-License-Identifier: Apache-2.0
//
// With k segments the first reaches the end after p−1 steps and the others follow one step apart, so that every link is
// busy: for large arrays the chain costs little more than sending the array once. Where a segment needs scratch it takes one
// of a few slots in turn.
#include "plan/algorithms.hpp"
#include "plan/segment_buffers.hpp"

namespace tutti::algorithm {

// steps p−2+k in k segments, bytes n
void chain_broadcast(PlanBuilder& b) {
  const RotatedRanks chain(b.spec(), b.spec().root);
  const bool first = chain.me == 0, last = chain.me + 1 == chain.size;
  for_each_segment(b.spec().count, b.spec().segment, [&](std::int64_t at, std::int64_t count) {
    if (!first) b.recv(chain.rank(chain.me - 1), b.output().part(at, count));
    if (!last) b.send(chain.rank(chain.me + 1), (first ? b.input() : b.output()).part(at, count));
  });
  if (first) b.copy(b.input(), b.output());
}

// steps p−2+k in k segments, bytes n; the partial sum comes down the chain to the root
void chain_reduce(PlanBuilder& b) {
  const RotatedRanks chain(b.spec(), b.spec().root);
  const bool first = chain.me == 0, last = chain.me + 1 == chain.size;
  const SegmentBuffers slots(b, last ? 0 : b.spec().count, b.spec().segment);
  for_each_segment(b.spec().count, b.spec().segment, [&](std::int64_t at, std::int64_t count) {
    const Piece own = b.input().part(at, count);
    if (last) {
      b.send(chain.rank(chain.me - 1), own);
      return;
    }
    const Piece slot = slots.at(at, count);
    b.recv(chain.rank(chain.me + 1), slot);
    const Piece sum = first ? b.output().part(at, count) : slot;
    b.reduce(own, slot, sum);
    if (first) {
      b.finish(sum);
    } else {
      b.send(chain.rank(chain.me - 1), sum);
    }
  });
}

// steps p−2+k in k segments, bytes n
void chain_scan(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const bool first = spec.rank == 0, last = spec.rank + 1 == spec.size;
  const SegmentBuffers slots(b, first ? 0 : spec.count, spec.segment);
  for_each_segment(spec.count, spec.segment, [&](std::int64_t at, std::int64_t count) {
    const Piece own = b.input().part(at, count), sum = b.output().part(at, count);
    if (first) {
      if (!last) b.send(spec.rank + 1, own);
      b.copy(own, sum);
    } else {
      const Piece slot = slots.at(at, count);
      b.recv(spec.rank - 1, slot);
      b.reduce(slot, own, last ? sum : slot);
      if (!last) b.send(spec.rank + 1, slot);
      if (!last) b.copy(slot, sum);
    }
    b.finish(sum);  // after the unfinished sum was passed on
  });
}

// steps p−2+k in k segments, bytes n. Two slots per segment: what came in is the result, with the own part it goes on.
void chain_exscan(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const bool first = spec.rank == 0, last = spec.rank + 1 == spec.size;
  const SegmentBuffers before(b, first ? 0 : spec.count, spec.segment);
  const SegmentBuffers with_own(b, first || last ? 0 : spec.count, spec.segment);
  for_each_segment(spec.count, spec.segment, [&](std::int64_t at, std::int64_t count) {
    const Piece own = b.input().part(at, count), result = b.output().part(at, count);
    if (first) {
      if (!last) b.send(spec.rank + 1, own);
      b.identity(result);
      return;
    }
    b.recv(spec.rank - 1, before.at(at, count));
    if (!last) {
      b.reduce(before.at(at, count), own, with_own.at(at, count));
      b.send(spec.rank + 1, with_own.at(at, count));
    }
    b.copy(before.at(at, count), result);
    b.finish(result);
  });
}

}  // namespace tutti::algorithm
