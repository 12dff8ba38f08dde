// cost.cpp: what a collective costs by each algorithm.
// SPDX-License-Identifier: Apache-2.0
//
// Each algorithm has a row of *facts*: rounds, messages and bytes, and `fill`, the bytes that pass before a pipeline is
// full. Time is made of them in one place. cost_test compares the facts with what the plans really do, and the time
// with a simulation.
#include "plan/cost.hpp"

#include <algorithm>
#include <map>

#include "plan/cost_facts.hpp"
#include "plan/select.hpp"

namespace tutti {

namespace {

// What a pipeline cuts: a block for the ring, half of the array for the two trees, else the array.
std::int64_t cut_unit(Algorithm algorithm, std::int64_t bytes, int size) {
  if (algorithm == Algorithm::ring) return bytes / size;
  return algorithm == Algorithm::double_tree ? bytes / 2 : bytes;
}

// Between hosts a long message is announced behind what waits in the queues on the way, and its bytes come once the answer is back. With
// several pieces under way the link has something to do meanwhile.
double seconds_of_announcements(const Facts& facts, std::int64_t pieces, const CostModel& model) {
  const auto messages = static_cast<double>(std::max<std::int64_t>(facts.messages, 1));
  const double message_bytes =
      static_cast<double>(std::max(facts.sent, facts.received)) / messages * static_cast<double>(pieces);
  const double waiting = std::clamp(message_bytes - model.queue_bytes, 0.0, model.queue_bytes);
  return static_cast<double>(facts.rounds) * waiting * model.between.seconds_per_byte / static_cast<double>(pieces);
}

Cost flat_cost(const CatalogRow& row, const Shape& shape, std::int64_t segment, const CostModel& model) {
  const Topology& where = shape.topology;
  if (where.size == 1) return {};
  const Numbers x(where.size, shape.bytes, cut_unit(row.algorithm, shape.bytes, where.size),
                  row.segments ? segment : 0);
  const Facts facts = facts_of(row.verb, row.algorithm, x);
  const CostModel::Link& link = where.nodes > 1 ? model.between : model.inside;
  // The ranks of a node share its link, unless only adjacent ranks communicate.
  const int streams = where.nodes > 1 && !facts.adjacent_only ? where.local_max : 1;
  const double incast = where.nodes > 1 && facts.has_incast ? model.incast : 1;
  const double moved =
      static_cast<double>(std::max(facts.sent, facts.received)) * streams * incast + static_cast<double>(facts.fill);
  const double reduced =
      static_cast<double>(facts.reduced) / static_cast<double>(facts.segments) +
      (row.verb == Verb::reduce || row.verb == Verb::all_reduce ? static_cast<double>(facts.fill) / 2 : 0);
  return {.rounds = facts.rounds,
          .messages = facts.messages,
          .bytes_sent = facts.sent,
          .bytes_received = facts.received,
          .bytes_reduced = facts.reduced,
          .time = static_cast<double>(facts.rounds) * link.latency +
                  static_cast<double>(std::max(facts.messages, facts.rounds)) * model.overhead +
                  moved * link.seconds_per_byte + reduced * model.reduce_seconds_per_byte +
                  (where.nodes > 1 ? seconds_of_announcements(facts, x.pieces, model) : 0)};
}

// The cheapest way to serve a part of a two-level collective, `streams` of which share the links between nodes.
Cost part(Verb verb, std::int64_t bytes, const Topology& where, int streams, CostModel model) {
  model.between.seconds_per_byte *= streams;
  Cost best;
  bool any = false;
  for (const Candidate& candidate : candidates({.verb = verb, .bytes = bytes, .topology = where}, {.model = model})) {
    if (!any || candidate.cost.time < best.time) best = candidate.cost;
    any = true;
  }
  return best;
}

// A part of a two-level collective: inside the nodes, or between them.
struct LevelCost {
  bool outer;
  Cost cost;
};

std::vector<LevelCost> level_costs(Verb verb, std::int64_t n, const Topology& where, const CostModel& model) {
  const int lanes = where.local_min;
  const Topology inside = Topology::on_one_node(where.local_max);
  const Topology between{.size = where.nodes, .nodes = where.nodes, .local_min = 1, .local_max = 1};
  const std::int64_t slice = n / lanes;
  std::vector<LevelCost> parts;
  const auto inner = [&](Verb v, std::int64_t bytes) { parts.push_back({false, part(v, bytes, inside, 1, model)}); };
  const auto outer = [&](Verb v, std::int64_t bytes) {
    parts.push_back({true, part(v, bytes, between, lanes, model)});
  };
  switch (verb) {
    case Verb::all_reduce:
      inner(Verb::reduce_scatter, n), outer(Verb::all_reduce, slice), inner(Verb::all_gather, n);
      break;
    case Verb::reduce: inner(Verb::reduce_scatter, n), outer(Verb::reduce, slice), inner(Verb::gather, n); break;
    case Verb::broadcast: inner(Verb::scatter, n), outer(Verb::broadcast, slice), inner(Verb::all_gather, n); break;
    case Verb::all_gather: outer(Verb::all_gather, slice), inner(Verb::all_gather, n); break;
    case Verb::reduce_scatter: inner(Verb::reduce_scatter, n), outer(Verb::reduce_scatter, slice); break;
    case Verb::gather: inner(Verb::gather, n / where.nodes), outer(Verb::gather, n); break;
    case Verb::scatter: outer(Verb::scatter, n), inner(Verb::scatter, n / where.nodes); break;
    default: inner(Verb::barrier, 0), outer(Verb::barrier, 0), inner(Verb::barrier, 0); break;
  }
  return parts;
}

// In k segments: the first passes through both levels, and from then on the slower level determines the throughput.
Cost hierarchical_cost(const CatalogRow& row, const Shape& shape, std::int64_t segment, const CostModel& model) {
  const bool cuts = row.segments && segment > 0 && segment < shape.bytes;
  const std::int64_t pieces = cuts ? (shape.bytes + segment - 1) / segment : 1;
  Cost sum;
  double inside = 0, between = 0;
  for (const auto& [outer, cost] : level_costs(shape.verb, shape.bytes / pieces, shape.topology, model)) {
    sum.rounds += cost.rounds;
    sum.messages += cost.messages * pieces;
    sum.bytes_sent += cost.bytes_sent * pieces;
    sum.bytes_received += cost.bytes_received * pieces;
    sum.bytes_reduced += cost.bytes_reduced * pieces;
    (outer ? between : inside) += cost.time;
  }
  sum.time = inside + between + static_cast<double>(pieces - 1) * std::max(inside, between);
  return sum;
}

}  // namespace

Topology Topology::of(int size, const std::vector<int>& node_of) {
  if (node_of.empty()) return on_one_node(size);
  std::map<int, int> ranks;
  for (const int node : node_of) ++ranks[node];
  Topology topology{.size = size, .nodes = static_cast<int>(ranks.size()), .local_min = size, .local_max = 0};
  for (const auto& [node, count] : ranks) {
    topology.local_min = std::min(topology.local_min, count);
    topology.local_max = std::max(topology.local_max, count);
  }
  return topology;
}

bool serves(const CatalogRow& row, const Shape& shape) {
  if (row.verb != shape.verb || (row.even_only && shape.uneven) || (shape.in_rank_order && !row.in_rank_order))
    return false;
  // With one node, or one rank per node, two levels are one; a part of a hierarchical plan is never hierarchical
  // itself.
  return row.algorithm != Algorithm::hierarchical || (shape.topology.nodes > 1 && shape.topology.local_max > 1);
}

Cost cost_of(const CatalogRow& row, const Shape& shape, std::int64_t segment, const CostModel& model) {
  return row.algorithm == Algorithm::hierarchical ? hierarchical_cost(row, shape, segment, model)
                                                  : flat_cost(row, shape, segment, model);
}

}  // namespace tutti
