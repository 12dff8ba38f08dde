// hierarchical_blocks.cpp: the verbs with one block per rank in two levels: all-gather, reduce-scatter, gather, scatter.
// SPDX-License-Identifier: Apache-2.0
//
// Between the nodes, blocks travel in bundles, so the array is worked on in *packed order*: bundle after bundle, and within
// a bundle node after node. Where packed order is the order of ranks, the caller's arrays are used as they lie; otherwise
// it is packed or unpacked once. For all-gather and reduce-scatter there is a bundle per lane; ranks without a lane of their
// own hand their block to the lane's rank on their node. For gather and scatter there is one bundle, of the nodes' leaders.
#include <vector>

#include "plan/algorithms.hpp"
#include "plan/nodes.hpp"

namespace tutti::algorithm {

namespace {

class Packing {
 public:
  Packing(const Spec& spec, const Nodes& nodes, int bundles)
      : blocks_(blocks_of(spec)), bundles_(bundles), at_(std::size_t(spec.size)) {
    std::int64_t next = 0;
    for (int bundle = 0; bundle < bundles; ++bundle) {
      bundle_begin_.push_back(next);
      for (const std::vector<int>& node : nodes.members) {
        portions_.push_back(next);
        for (std::size_t i = std::size_t(bundle); i < node.size(); i += std::size_t(bundles)) {
          at_[std::size_t(node[i])] = next;
          next += blocks_.count(node[i]);
        }
      }
    }
    bundle_begin_.push_back(next);
    portions_.push_back(next);
    nodes_ = static_cast<int>(nodes.members.size());
    for (int rank = 0; rank < spec.size; ++rank)
      in_order_ = in_order_ && at_[std::size_t(rank)] == blocks_.offset(rank);
  }

  [[nodiscard]] bool in_rank_order() const { return in_order_; }
  [[nodiscard]] std::int64_t total() const { return blocks_.total(); }
  [[nodiscard]] std::int64_t bundle_count(int bundle) const {
    return bundle_begin_[std::size_t(bundle) + 1] - bundle_begin_[std::size_t(bundle)];
  }
  [[nodiscard]] std::int64_t portion_count(int bundle, int node) const {
    const auto i = std::size_t(bundle * nodes_ + node);
    return portions_[i + 1] - portions_[i];
  }
  [[nodiscard]] std::vector<std::int64_t> portion_counts(int bundle) const {
    std::vector<std::int64_t> counts;
    for (int node = 0; node < nodes_; ++node) counts.push_back(portion_count(bundle, node));
    return counts;
  }
  // Per rank of a node: the bundle of those that have one.
  [[nodiscard]] std::vector<std::int64_t> bundle_counts(std::size_t ranks) const {
    std::vector<std::int64_t> counts(ranks, 0);
    for (int bundle = 0; bundle < bundles_; ++bundle) counts[std::size_t(bundle)] = bundle_count(bundle);
    return counts;
  }
  [[nodiscard]] Piece bundle(Piece packed, int i) const {
    return packed.part(bundle_begin_[std::size_t(i)], bundle_count(i));
  }
  [[nodiscard]] Piece portion(Piece packed, int bundle, int node) const {
    return packed.part(portions_[std::size_t(bundle * nodes_ + node)], portion_count(bundle, node));
  }
  [[nodiscard]] Piece block(Piece packed, int rank) const {
    return packed.part(at_[std::size_t(rank)], blocks_.count(rank));
  }
  // A rank's block within the portion of its bundle and node.
  [[nodiscard]] Piece within(Piece portion, int bundle, int node, int rank) const {
    return portion.part(at_[std::size_t(rank)] - portions_[std::size_t(bundle * nodes_ + node)], blocks_.count(rank));
  }

  enum class Way { pack, unpack };
  // Copies between rank order and packed order; blocks that are adjacent in both go together.
  void reorder(PlanBuilder& b, Piece by_rank, Piece packed, Way way) const {
    if (in_order_) return;
    const int size = static_cast<int>(at_.size());
    for (int first = 0, last = 0; first < size; first = last) {
      for (last = first + 1; last < size && at_[std::size_t(last)] - at_[std::size_t(first)] ==
                                                blocks_.offset(last) - blocks_.offset(first);)
        ++last;
      const Piece ranks = blocks_.range(by_rank, first, last),
                  there = packed.part(at_[std::size_t(first)], ranks.count);
      b.copy(way == Way::pack ? ranks : there, way == Way::pack ? there : ranks);
    }
  }

 private:
  Blocks blocks_;
  int bundles_, nodes_ = 0;
  bool in_order_ = true;
  std::vector<std::int64_t> at_;                       // per rank, where its block is in packed order
  std::vector<std::int64_t> bundle_begin_, portions_;  // where bundles, and the nodes' portions of them, begin
};

struct Here {
  const std::vector<int>& mine;
  int node, local, bundle;
  bool in_lane;
  Here(const Nodes& nodes, int rank)
      : mine(nodes.members[std::size_t(nodes.node_of[std::size_t(rank)])]),
        node(nodes.node_of[std::size_t(rank)]),
        local(nodes.local_of[std::size_t(rank)]),
        bundle(local % nodes.lanes),
        in_lane(local < nodes.lanes) {}
};

}  // namespace

// steps and bytes of: all-gather of each lane between the nodes, all-gather inside
void hierarchical_all_gather(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Nodes nodes(spec);
  const Here here(nodes, spec.rank);
  const Packing packing(spec, nodes, nodes.lanes);
  const Piece packed = packing.in_rank_order() ? b.output() : b.scratch(packing.total());
  const Piece bundle = packing.bundle(packed, here.bundle);
  if (here.in_lane) {
    b.copy(b.input(), packing.block(packed, spec.rank));
    for (std::size_t i = std::size_t(here.local + nodes.lanes); i < here.mine.size(); i += std::size_t(nodes.lanes)) {
      b.recv(here.mine[i], packing.block(packed, here.mine[i]));
    }
    b.call({.verb = Verb::all_gather,
            .members = nodes.lane(here.local),
            .counts = packing.portion_counts(here.bundle),
            .from = packing.portion(packed, here.bundle, here.node),
            .to = bundle});
  } else {
    b.send(here.mine[std::size_t(here.bundle)], b.input());
  }
  if (nodes.lanes == 1) {
    b.call({.verb = Verb::broadcast,
            .members = here.mine,
            .counts = {packing.total()},
            .from = here.in_lane ? packed : no_piece,
            .to = packed});
  } else {
    b.call({.verb = Verb::all_gather,
            .members = here.mine,
            .counts = packing.bundle_counts(here.mine.size()),
            .from = here.in_lane ? bundle : no_piece,
            .to = packed});
  }
  packing.reorder(b, b.output(), packed, Packing::Way::unpack);
}

// steps and bytes of: reduce-scatter inside, reduce-scatter of each lane between the nodes
void hierarchical_reduce_scatter(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Nodes nodes(spec);
  const Here here(nodes, spec.rank);
  const Packing packing(spec, nodes, nodes.lanes);
  const Piece packed = packing.in_rank_order() ? b.input() : b.scratch(packing.total());
  packing.reorder(b, b.input(), packed, Packing::Way::pack);
  const Piece bundle = here.in_lane ? b.scratch(packing.bundle_count(here.bundle)) : no_piece;
  if (nodes.lanes == 1) {
    b.call({.verb = Verb::reduce, .members = here.mine, .counts = {packing.total()}, .from = packed, .to = bundle});
  } else {
    b.call({.verb = Verb::reduce_scatter,
            .members = here.mine,
            .counts = packing.bundle_counts(here.mine.size()),
            .from = packed,
            .to = bundle});
  }
  if (!here.in_lane) {
    b.recv(here.mine[std::size_t(here.bundle)], b.output());
    return;
  }
  const bool alone = here.local + nodes.lanes >= int(here.mine.size());  // nobody else's block in this portion
  const Piece portion = alone ? b.output() : b.scratch(packing.portion_count(here.bundle, here.node));
  b.call({.verb = Verb::reduce_scatter,
          .members = nodes.lane(here.local),
          .counts = packing.portion_counts(here.bundle),
          .from = bundle,
          .to = portion});
  b.finish(portion);
  for (std::size_t i = std::size_t(here.local + nodes.lanes); i < here.mine.size(); i += std::size_t(nodes.lanes)) {
    b.send(here.mine[i], packing.within(portion, here.bundle, here.node, here.mine[i]));
  }
  if (!alone) b.copy(packing.within(portion, here.bundle, here.node, spec.rank), b.output());
}

namespace {

std::vector<std::int64_t> counts_of(const Spec& spec, const std::vector<int>& ranks) {
  const Blocks blocks = blocks_of(spec);
  std::vector<std::int64_t> counts;
  counts.reserve(ranks.size());
  for (const int rank : ranks) counts.push_back(blocks.count(rank));
  return counts;
}

}  // namespace

// steps and bytes of: gather inside, gather of the nodes' leaders; the root leads its node
void hierarchical_gather(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Nodes nodes(spec, spec.root);
  const Here here(nodes, spec.rank);
  const Packing packing(spec, nodes, 1);
  const bool leads = here.local == 0, at_root = spec.rank == spec.root;
  const Piece portion = leads ? b.scratch(packing.portion_count(0, here.node)) : no_piece;
  b.call({.verb = Verb::gather,
          .members = here.mine,
          .counts = counts_of(spec, here.mine),
          .from = b.input(),
          .to = portion});
  if (!leads) return;
  const Piece packed = !at_root ? no_piece : packing.in_rank_order() ? b.output() : b.scratch(packing.total());
  b.call({.verb = Verb::gather,
          .members = nodes.lane(0),
          .root = nodes.node_of[std::size_t(spec.root)],
          .counts = packing.portion_counts(0),
          .from = portion,
          .to = packed});
  if (at_root) packing.reorder(b, b.output(), packed, Packing::Way::unpack);
}

// steps and bytes of: scatter to the nodes' leaders, scatter inside; the root leads its node
void hierarchical_scatter(PlanBuilder& b) {
  const Spec& spec = b.spec();
  const Nodes nodes(spec, spec.root);
  const Here here(nodes, spec.rank);
  const Packing packing(spec, nodes, 1);
  const bool leads = here.local == 0, at_root = spec.rank == spec.root;
  const Piece portion = leads ? b.scratch(packing.portion_count(0, here.node)) : no_piece;
  if (leads) {
    const Piece packed = !at_root ? no_piece : packing.in_rank_order() ? b.input() : b.scratch(packing.total());
    if (at_root) packing.reorder(b, b.input(), packed, Packing::Way::pack);
    b.call({.verb = Verb::scatter,
            .members = nodes.lane(0),
            .root = nodes.node_of[std::size_t(spec.root)],
            .counts = packing.portion_counts(0),
            .from = packed,
            .to = portion});
  }
  b.call({.verb = Verb::scatter,
          .members = here.mine,
          .counts = counts_of(spec, here.mine),
          .from = portion,
          .to = b.output()});
}

}  // namespace tutti::algorithm
