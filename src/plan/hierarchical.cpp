// hierarchical.cpp: all-reduce, reduce, broadcast and barrier in two levels: inside the nodes, and between them.
// SPDX-License-Identifier: Apache-2.0
//
// The array is cut into one *slice* per lane (nodes.hpp). Inside a node, the ranks of the lanes get their slices; the
// lanes work between the nodes side by side, each on its slice; inside the node the slices come together again. A
// node's links so carry each element once, however many ranks it has. With one lane (some node has one rank) its
// members are leaders. Large arrays go in segments, one of them inside while another is between the nodes. The parts
// are requests on subgroups, which any backend may serve: shared memory inside, a fast network between.
#include <vector>

#include "plan/algorithms.hpp"
#include "plan/nodes.hpp"

namespace tutti::algorithm {

namespace {

// This rank's place in the two levels.
struct Levels {
  Nodes nodes;
  const std::vector<int>& mine;  // the ranks of this node
  int node, local;
  bool in_lane;

  Levels(const Spec& spec, int first)
      : nodes(spec, first),
        mine(nodes.members[std::size_t(nodes.node_of[std::size_t(spec.rank)])]),
        node(nodes.node_of[std::size_t(spec.rank)]),
        local(nodes.local_of[std::size_t(spec.rank)]),
        in_lane(local < nodes.lanes) {}
  [[nodiscard]] bool leaders_only() const { return nodes.lanes == 1; }
  [[nodiscard]] std::vector<int> own_lane() const { return nodes.lane(local); }
};

// A segment of the array, cut into one slice per lane.
struct Segment {
  const Levels& levels;
  std::int64_t at, count;
  Blocks slices;
  std::vector<std::int64_t> slice_counts;  // per rank of this node

  Segment(const Levels& home, std::int64_t begin, std::int64_t length)
      : levels(home),
        at(begin),
        count(length),
        slices(Blocks::split(length, home.nodes.lanes)),
        slice_counts(home.mine.size(), 0) {
    for (int i = 0; i < home.nodes.lanes; ++i) slice_counts[std::size_t(i)] = slices.count(i);
  }
  [[nodiscard]] Piece of(Piece whole) const { return whole.part(at, count); }
  [[nodiscard]] Piece slice_of(Piece whole) const {
    return levels.in_lane ? slices.block(of(whole), levels.local) : whole.part(0, 0);
  }
  [[nodiscard]] std::int64_t slice_count() const { return levels.in_lane ? slices.count(levels.local) : 0; }
};

// Every segment goes through two stages: `out` ends with its calls between the nodes, `back` is inside the node again.
// Local peers carry out their calls in the order of the plan, so a segment comes back after the next one has gone out:
// while one of them travels between the nodes, the other is processed inside.
template <typename Out, typename Back>
void in_a_pipeline(const Spec& spec, const Levels& levels, Out out, Back back) {
  std::vector<Segment> segments;
  for_each_segment(spec.count, spec.segment,
                   [&](std::int64_t at, std::int64_t count) { segments.emplace_back(levels, at, count); });
  for (std::size_t i = 0; i < segments.size(); ++i) {
    out(segments[i], i);
    if (i > 0) back(segments[i - 1], i - 1);
  }
  if (!segments.empty()) back(segments.back(), segments.size() - 1);
}

void reduce_inside(PlanBuilder& b, const Segment& segment, Piece to) {
  const Levels& levels = segment.levels;
  const Piece from = segment.of(b.input());
  if (levels.leaders_only()) {
    b.call({.verb = Verb::reduce, .members = levels.mine, .counts = {segment.count}, .from = from, .to = to});
  } else {
    b.call(
        {.verb = Verb::reduce_scatter, .members = levels.mine, .counts = segment.slice_counts, .from = from, .to = to});
  }
}

void share_inside(PlanBuilder& b, const Segment& segment) {
  const Levels& levels = segment.levels;
  const Piece to = segment.of(b.output());
  if (levels.leaders_only()) {
    b.call({.verb = Verb::broadcast,
            .members = levels.mine,
            .counts = {segment.count},
            .from = levels.in_lane ? to : no_piece,
            .to = to});
  } else {
    b.call({.verb = Verb::all_gather,
            .members = levels.mine,
            .counts = segment.slice_counts,
            .from = segment.slice_of(b.output()),
            .to = to});
  }
}

}  // namespace

// steps and bytes of: reduce-scatter inside, all-reduce of n/lanes between the nodes, all-gather inside; in k segments
// the slower of the two levels k times, and the other one once
void hierarchical_all_reduce(PlanBuilder& b) {
  const Levels levels(b.spec(), -1);
  const auto out = [&](const Segment& segment, std::size_t) {
    const Piece slice = segment.slice_of(b.output());
    reduce_inside(b, segment, slice);
    if (!levels.in_lane) return;
    b.call(
        {.verb = Verb::all_reduce, .members = levels.own_lane(), .counts = {slice.count}, .from = slice, .to = slice});
    b.finish(slice);
  };
  in_a_pipeline(b.spec(), levels, out, [&](const Segment& segment, std::size_t) { share_inside(b, segment); });
}

// steps and bytes of: reduce-scatter inside, reduce of n/lanes between the nodes, gather inside the root's node; in a
// pipeline, likewise
void hierarchical_reduce(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Levels levels(spec, spec.root);
  const int root_node = levels.nodes.node_of[std::size_t(spec.root)];
  const bool at_root = spec.rank == spec.root;
  std::vector<Piece> slices;  // per segment
  const auto out = [&](const Segment& segment, std::size_t) {
    const Piece slice = at_root ? segment.slice_of(b.output()) : b.scratch(segment.slice_count());
    slices.push_back(slice);
    reduce_inside(b, segment, slice);
    if (!levels.in_lane) return;
    b.call({.verb = Verb::reduce,
            .members = levels.own_lane(),
            .root = root_node,
            .counts = {slice.count},
            .from = slice,
            .to = levels.node == root_node ? slice : no_piece});
  };
  const auto back = [&](const Segment& segment, std::size_t number) {
    if (levels.node != root_node || levels.leaders_only()) return;
    b.call({.verb = Verb::gather,
            .members = levels.mine,
            .counts = segment.slice_counts,
            .from = slices[number],
            .to = at_root ? segment.of(b.output()) : no_piece});
  };
  in_a_pipeline(spec, levels, out, back);
  if (at_root) b.finish(b.output());
}

// steps and bytes of: scatter inside the root's node, broadcast of n/lanes between the nodes, all-gather inside; in a
// pipeline, likewise
void hierarchical_broadcast(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Levels levels(spec, spec.root);
  const int root_node = levels.nodes.node_of[std::size_t(spec.root)];
  const bool at_root = spec.rank == spec.root;
  const auto out = [&](const Segment& segment, std::size_t) {
    const Piece slice = segment.slice_of(b.output());
    Piece between_from = levels.node == root_node ? slice : no_piece;
    if (levels.leaders_only()) {
      if (at_root) between_from = segment.of(b.input());
    } else if (levels.node == root_node) {
      b.call({.verb = Verb::scatter,
              .members = levels.mine,
              .counts = segment.slice_counts,
              .from = at_root ? segment.of(b.input()) : no_piece,
              .to = slice});
    }
    if (!levels.in_lane) return;
    b.call({.verb = Verb::broadcast,
            .members = levels.own_lane(),
            .root = root_node,
            .counts = {slice.count},
            .from = between_from,
            .to = slice});
  };
  in_a_pipeline(spec, levels, out, [&](const Segment& segment, std::size_t) { share_inside(b, segment); });
}

// steps of: a barrier inside each node, one of their leaders, one inside again
void hierarchical_barrier(PlanBuilder& b) {
  const Nodes nodes(b.spec());
  const std::vector<int>& mine = nodes.members[std::size_t(nodes.node_of[std::size_t(b.spec().rank)])];
  const auto inside = [&] {
    return mine.size() > 1 ? b.call({.verb = Verb::barrier, .members = mine}) : PlanBuilder::no_step;
  };
  b.after(inside());
  if (nodes.local_of[std::size_t(b.spec().rank)] == 0 && nodes.members.size() > 1) {
    b.after(b.call({.verb = Verb::barrier, .members = nodes.lane(0)}));
  }
  if (nodes.members.size() > 1) inside();
}

}  // namespace tutti::algorithm
