// double_tree.cpp: broadcast, reduce and all-reduce along two binary trees at once, segment by segment.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: positions are counted from the root. Positions 1 … p−1 form a binary tree in order (odd positions are
// leaves), whose top hangs below position 0. The second tree is the first one mirrored or shifted by one, so that inner
// positions of one are leaves of the other (Sanders, Speck and Träff). Each tree carries half of the array: every rank but
// the root then sends and receives about as much as it would in a chain, at logarithmic depth.
#include "plan/algorithms.hpp"
#include "plan/segment_buffers.hpp"

namespace tutti::algorithm {

namespace {

constexpr int none = -1;

struct Node {
  int parent = none, left = none, right = none;
};

// The in-order tree: a position's height is its lowest set bit.
Node first_tree(int position, int size) {
  if (position == 0) return {.right = floor_power_of_two(size - 1)};
  const int bit = position & -position;
  Node node{.parent = (position ^ bit) | bit << 1};
  if (node.parent >= size) node.parent = position ^ bit;
  if (bit > 1) node.left = position - bit / 2;
  for (int step = bit / 2; step > 0 && node.right == none; step /= 2) {
    if (position + step < size) node.right = position + step;
  }
  return node;
}

// Even p: shifted by one; odd p: mirrored. Either way odd and even positions change places (but for one leaf if p is even).
Node second_tree(int position, int size) {
  if (size == 2) return first_tree(position, size);
  const int others = size - 1;
  const bool mirror = size % 2 == 1;
  const auto there = [&](int v) { return v <= 0 ? v : mirror ? size - v : v % others + 1; };
  const auto back = [&](int v) { return v <= 0 ? v : mirror ? size - v : (v - 2 + others) % others + 1; };
  const Node node = first_tree(there(position), size);
  return {.parent = back(node.parent), .left = back(node.left), .right = back(node.right)};
}

// One of the two trees with its half of the array, as this rank sees it.
class Half {
 public:
  Half(PlanBuilder& b, const RotatedRanks& ranks, int which)
      : b_(b),
        ranks_(ranks),
        node_(which == 0 ? first_tree(ranks.me, ranks.size) : second_tree(ranks.me, ranks.size)),
        blocks_(Blocks::split(b.spec().count, 2)),
        which_(which) {}

  [[nodiscard]] std::int64_t count() const { return blocks_.count(which_); }
  [[nodiscard]] bool inner() const { return node_.left != none || node_.right != none; }

  // The children's parts and the own one, in the order of positions, on to the parent or, at the root, into the output.
  void reduce_up(const SegmentBuffers& lefts, const SegmentBuffers& rights, std::int64_t at, std::int64_t length) {
    const Piece own = segment(b_.input(), at, length);
    if (!inner()) {
      b_.send(ranks_.rank(node_.parent), own);
      return;
    }
    const bool at_root = node_.parent == none;
    const Piece left = lefts.at(at, length), right = rights.at(at, length);
    const Piece sum = at_root ? segment(b_.output(), at, length) : left;
    Piece value = own;
    if (node_.left != none) {
      b_.recv(ranks_.rank(node_.left), left);
      b_.reduce(left, value, sum);
      value = sum;
    }
    if (node_.right != none) {
      b_.recv(ranks_.rank(node_.right), right);
      b_.reduce(value, right, sum);
    }
    if (at_root) {
      b_.finish(sum);
    } else {
      b_.send(ranks_.rank(node_.parent), sum);
    }
  }

  void pass_down(Piece root_has, std::int64_t at, std::int64_t length) {
    const bool at_root = node_.parent == none;
    const Piece piece = segment(at_root ? root_has : b_.output(), at, length);
    if (!at_root) b_.recv(ranks_.rank(node_.parent), piece);
    for (const int child : {node_.left, node_.right}) {
      if (child != none) b_.send(ranks_.rank(child), piece);
    }
  }

 private:
  [[nodiscard]] Piece segment(Piece whole, std::int64_t at, std::int64_t length) const {
    return whole.part(blocks_.offset(which_) + at, length);
  }
  PlanBuilder& b_;
  const RotatedRanks& ranks_;
  Node node_;
  Blocks blocks_;
  int which_;
};

enum class Ways { up, down, both };

void run_trees(PlanBuilder& b, Ways ways) {
  const RotatedRanks ranks(b.spec(), b.spec().verb == Verb::all_reduce ? 0 : b.spec().root);
  Half halves[2] = {{b, ranks, 0}, {b, ranks, 1}};
  const auto scratch = [&](const Half& half) {
    return SegmentBuffers(b, half.inner() && ways != Ways::down ? half.count() : 0, b.spec().segment);
  };
  const SegmentBuffers lefts[2] = {scratch(halves[0]), scratch(halves[1])},
                       rights[2] = {scratch(halves[0]), scratch(halves[1])};
  // Half 0 is the longer one, by one element at most; the segments of both are taken in turn.
  for_each_segment(halves[0].count(), b.spec().segment, [&](std::int64_t at, std::int64_t) {
    for (int t = 0; t < 2; ++t) {
      const std::int64_t segment = b.spec().segment > 0 ? b.spec().segment : halves[t].count();
      const std::int64_t length = std::min(segment, halves[t].count() - at);
      if (length <= 0) continue;
      if (ways != Ways::down) halves[t].reduce_up(lefts[t], rights[t], at, length);
      if (ways != Ways::up) halves[t].pass_down(ways == Ways::down ? b.input() : b.output(), at, length);
    }
  });
}

}  // namespace

// steps about log₂ p + k in k segments, bytes n
void double_tree_broadcast(PlanBuilder& b) {
  run_trees(b, Ways::down);
  if (b.spec().rank == b.spec().root) b.copy(b.input(), b.output());
}

// steps about log₂ p + k in k segments, bytes n
void double_tree_reduce(PlanBuilder& b) { run_trees(b, Ways::up); }

// steps about 2 log₂ p + k in k segments, bytes 2n
void double_tree_all_reduce(PlanBuilder& b) { run_trees(b, Ways::both); }

}  // namespace tutti::algorithm
