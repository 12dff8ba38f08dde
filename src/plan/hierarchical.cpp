// hierarchical.cpp: all-reduce, reduce, broadcast and barrier in two levels: inside the nodes, and between them.
// SPDX-License-Identifier: Apache-2.0
//
// The array is cut into one *slice* per lane (nodes.hpp). Inside a node, the ranks of the lanes get their slices; the
// lanes work between the nodes side by side, each on its slice; inside the node the slices come together again. A node's
// links so carry each element once, however many ranks it has. With one lane (some node has one rank) its members are
// leaders. The parts are requests on subgroups, which any backend may serve: shared memory inside, a fast network between.
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
  Blocks slices;
  bool in_lane;
  std::vector<std::int64_t> slice_counts;  // per rank of this node

  Levels(const Spec& spec, int first)
      : nodes(spec, first),
        mine(nodes.members[std::size_t(nodes.node_of[std::size_t(spec.rank)])]),
        node(nodes.node_of[std::size_t(spec.rank)]),
        local(nodes.local_of[std::size_t(spec.rank)]),
        slices(Blocks::split(spec.count, nodes.lanes)),
        in_lane(local < nodes.lanes),
        slice_counts(mine.size(), 0) {
    for (int i = 0; i < nodes.lanes; ++i) slice_counts[std::size_t(i)] = slices.count(i);
  }
  [[nodiscard]] bool leaders_only() const { return nodes.lanes == 1; }
  [[nodiscard]] Piece slice_of(Piece whole) const { return in_lane ? slices.block(whole, local) : whole.part(0, 0); }
};

constexpr Piece nothing{};

void reduce_inside(PlanBuilder& b, const Levels& levels, Piece to) {
  if (levels.leaders_only()) {
    b.call({.verb = Verb::reduce, .members = levels.mine, .counts = {b.spec().count}, .from = b.input(), .to = to});
  } else {
    b.call({.verb = Verb::reduce_scatter,
            .members = levels.mine,
            .counts = levels.slice_counts,
            .from = b.input(),
            .to = to});
  }
}

void share_inside(PlanBuilder& b, const Levels& levels) {
  if (levels.leaders_only()) {
    const Piece from = levels.in_lane ? b.output() : nothing;
    b.call(
        {.verb = Verb::broadcast, .members = levels.mine, .counts = {b.spec().count}, .from = from, .to = b.output()});
  } else {
    b.call({.verb = Verb::all_gather,
            .members = levels.mine,
            .counts = levels.slice_counts,
            .from = levels.slice_of(b.output()),
            .to = b.output()});
  }
}

}  // namespace

// steps and bytes of: reduce-scatter inside, all-reduce of n/lanes between the nodes, all-gather inside
void hierarchical_all_reduce(PlanBuilder& b) {
  const Levels levels(b.spec(), -1);
  const Piece slice = levels.slice_of(b.output());
  reduce_inside(b, levels, slice);
  if (levels.in_lane) {
    b.call({.verb = Verb::all_reduce,
            .members = levels.nodes.lane(levels.local),
            .counts = {slice.count},
            .from = slice,
            .to = slice});
    b.finish(slice);
  }
  share_inside(b, levels);
}

// steps and bytes of: reduce-scatter inside, reduce of n/lanes between the nodes, gather inside the root's node
void hierarchical_reduce(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Levels levels(spec, spec.root);
  const int root_node = levels.nodes.node_of[std::size_t(spec.root)];
  const bool at_root = spec.rank == spec.root;
  const Piece slice =
      at_root ? levels.slice_of(b.output()) : b.scratch(levels.in_lane ? levels.slices.count(levels.local) : 0);
  reduce_inside(b, levels, slice);
  if (levels.in_lane) {
    b.call({.verb = Verb::reduce,
            .members = levels.nodes.lane(levels.local),
            .root = root_node,
            .counts = {slice.count},
            .from = slice,
            .to = levels.node == root_node ? slice : nothing});
  }
  if (levels.node == root_node && !levels.leaders_only()) {
    b.call({.verb = Verb::gather,
            .members = levels.mine,
            .counts = levels.slice_counts,
            .from = slice,
            .to = at_root ? b.output() : nothing});
  }
  if (at_root) b.finish(b.output());
}

// steps and bytes of: scatter inside the root's node, broadcast of n/lanes between the nodes, all-gather inside
void hierarchical_broadcast(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Levels levels(spec, spec.root);
  const int root_node = levels.nodes.node_of[std::size_t(spec.root)];
  const bool at_root = spec.rank == spec.root;
  const Piece slice = levels.slice_of(b.output());
  Piece between_from = levels.node == root_node ? slice : nothing;
  if (levels.leaders_only()) {
    if (at_root) between_from = b.input();
  } else if (levels.node == root_node) {
    b.call({.verb = Verb::scatter,
            .members = levels.mine,
            .counts = levels.slice_counts,
            .from = at_root ? b.input() : nothing,
            .to = slice});
  }
  if (levels.in_lane) {
    b.call({.verb = Verb::broadcast,
            .members = levels.nodes.lane(levels.local),
            .root = root_node,
            .counts = {slice.count},
            .from = between_from,
            .to = slice});
  }
  share_inside(b, levels);
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
