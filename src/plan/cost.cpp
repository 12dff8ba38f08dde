// cost.cpp: what a collective costs by each algorithm.
// SPDX-License-Identifier: Apache-2.0
//
// Each algorithm has a row of *facts*: rounds, messages and bytes, and `fill`, the bytes that pass before a pipeline is
// full. Time is made of them in one place. cost_test compares the facts with what the plans really do, and the time with a
// simulation.
#include "plan/cost.hpp"

#include <algorithm>
#include <map>

#include "plan/layout.hpp"
#include "plan/select.hpp"

namespace tutti {

namespace {

struct Facts {
  std::int64_t rounds = 0, messages = 0, sent = 0, received = 0, reduced = 0;
  std::int64_t fill = 0;      // bytes on the way before every rank is busy
  std::int64_t segments = 1;  // with several, reducing overlaps with receiving
  bool neighbours = false;    // only neighbouring ranks talk: one stream leaves a node
};

// The numbers that formulas are made of.
struct Numbers {
  std::int64_t p, n, block, half_depth, depth, power;
  bool folded;
  std::int64_t pieces, piece;  // segments of the unit that is cut, and their bytes
  Numbers(std::int64_t ranks, std::int64_t bytes, std::int64_t cut_unit, std::int64_t segment)
      : p(ranks),
        n(bytes),
        block(bytes / ranks),
        half_depth(0),
        depth(ceil_log2(static_cast<int>(ranks))),
        power(floor_power_of_two(static_cast<int>(ranks))),
        folded(power != p),
        pieces(segment > 0 && cut_unit > 0 ? (cut_unit + segment - 1) / segment : 1),
        piece(segment > 0 ? std::min(segment, cut_unit) : cut_unit) {
    half_depth = folded ? depth - 1 : depth;  // ⌊log₂ p⌋
  }
  [[nodiscard]] std::int64_t others() const { return block * (p - 1); }
  // Blocks of the largest subtree below the root of a binomial tree.
  [[nodiscard]] std::int64_t subtree() const {
    const std::int64_t top = std::int64_t{1} << (depth - 1);
    return std::max(p - top, top / 2);
  }
  [[nodiscard]] std::int64_t tree_height() const { return 1 + ceil_log2(floor_power_of_two(static_cast<int>(p - 1))); }
  // Ranks behind positions [0, 1), [0, 2), [0, 4), …, added up (fold.hpp).
  [[nodiscard]] std::int64_t ranks_behind() const {
    std::int64_t sum = 0;
    for (std::int64_t bit = 1; bit < power; bit *= 2) sum += bit + std::min(bit, p - power);
    return sum;
  }
};

Facts all_reduce_facts(Algorithm algorithm, const Numbers& x) {
  const std::int64_t fold = x.folded ? 1 : 0;
  switch (algorithm) {
    case Algorithm::ring:
      return {.rounds = 2 * (x.p - 1),
              .messages = 2 * (x.p - 1) * x.pieces,
              .sent = 2 * x.others(),
              .received = 2 * x.others(),
              .reduced = x.others(),
              .segments = x.pieces,
              .neighbours = true};
    case Algorithm::recursive_doubling:
      return {.rounds = x.half_depth + 2 * fold,
              .messages = x.half_depth + fold,
              .sent = x.n * (x.half_depth + fold),
              .received = x.n * (x.half_depth + fold),
              .reduced = x.n * (x.half_depth + fold)};
    case Algorithm::halving_doubling: {
      const std::int64_t halves = x.n - x.n / x.power;
      return {.rounds = 2 * x.half_depth + 2 * fold,
              .messages = 2 * x.half_depth + fold,
              .sent = 2 * halves + fold * x.n,
              .received = 2 * halves + fold * x.n,
              .reduced = halves + fold * x.n};
    }
    case Algorithm::circulant:
      return {.rounds = 2 * x.depth,
              .messages = 5 * x.depth,
              .sent = 2 * x.others(),
              .received = 2 * x.others(),
              .reduced = x.others()};
    default: {  // double_tree
      const std::int64_t bytes = x.p == 2 ? x.n : x.p == 3 ? x.n * 3 / 2 : 2 * x.n;
      return {.rounds = 2 * x.tree_height(),
              .messages = 4 * x.pieces,
              .sent = bytes,
              .received = bytes,
              .reduced = x.n,
              .fill = 4 * x.tree_height() * x.piece,
              .segments = x.pieces};
    }
  }
}

Facts reduce_facts(Algorithm algorithm, const Numbers& x) {
  switch (algorithm) {
    case Algorithm::binomial:
      return {.rounds = x.half_depth,
              .messages = x.depth,
              .sent = x.n,
              .received = x.n * x.depth,
              .reduced = x.n * x.depth};
    case Algorithm::chain:
      return {.rounds = x.p - 1,
              .messages = x.pieces,
              .sent = x.n,
              .received = x.n,
              .reduced = x.n,
              .fill = (x.p - 2) * x.piece,
              .segments = x.pieces,
              .neighbours = true};
    case Algorithm::double_tree:
      return {.rounds = x.tree_height(),
              .messages = 2 * x.pieces,
              .sent = x.n,
              .received = x.n,
              .reduced = x.n,
              .fill = 2 * x.tree_height() * x.piece,
              .segments = x.pieces};
    default:  // scatter_gather
      return {.rounds = x.depth + x.half_depth,
              .messages = 4 * x.depth,
              .sent = x.others() + x.subtree() * x.block,
              .received = 2 * x.others(),
              .reduced = x.others()};
  }
}

Facts broadcast_facts(Algorithm algorithm, const Numbers& x) {
  switch (algorithm) {
    case Algorithm::binomial:
      return {.rounds = x.half_depth, .messages = x.depth, .sent = x.n * x.depth, .received = x.n};
    case Algorithm::chain:
      return {.rounds = x.p - 1,
              .messages = x.pieces,
              .sent = x.n,
              .received = x.n,
              .fill = (x.p - 2) * x.piece,
              .segments = x.pieces,
              .neighbours = true};
    case Algorithm::double_tree:
      return {.rounds = x.tree_height(),
              .messages = 2 * x.pieces,
              .sent = x.n,
              .received = x.n,
              .fill = 2 * x.tree_height() * x.piece,
              .segments = x.pieces};
    default:  // scatter_gather
      return {.rounds = x.half_depth + x.depth,
              .messages = 3 * x.depth,
              .sent = 2 * x.others(),
              .received = x.others() + x.subtree() * x.block};
  }
}

Facts all_gather_facts(Algorithm algorithm, const Numbers& x) {
  switch (algorithm) {
    case Algorithm::ring:
      return {.rounds = x.p - 1,
              .messages = (x.p - 1) * x.pieces,
              .sent = x.others(),
              .received = x.others(),
              .segments = x.pieces,
              .neighbours = true};
    case Algorithm::direct: return {.rounds = 1, .messages = x.p - 1, .sent = x.others(), .received = x.others()};
    case Algorithm::recursive_doubling:
      if (!x.folded) return {.rounds = x.depth, .messages = x.depth, .sent = x.others(), .received = x.others()};
      return {.rounds = x.half_depth + 2,
              .messages = x.half_depth + 2,
              .sent = (x.ranks_behind() + x.p - 1) * x.block,
              .received = x.others()};
    default: return {.rounds = x.depth, .messages = 2 * x.depth, .sent = x.others(), .received = x.others()};
  }
}

Facts reduce_scatter_facts(Algorithm algorithm, const Numbers& x) {
  switch (algorithm) {
    case Algorithm::ring:
      return {.rounds = x.p - 1,
              .messages = (x.p - 1) * x.pieces,
              .sent = x.others(),
              .received = x.others(),
              .reduced = x.others(),
              .segments = x.pieces,
              .neighbours = true};
    case Algorithm::pairwise:
      return {
          .rounds = x.p / 2, .messages = x.p - 1, .sent = x.others(), .received = x.others(), .reduced = x.others()};
    case Algorithm::halving_doubling: {
      if (!x.folded)
        return {
            .rounds = x.depth, .messages = x.depth, .sent = x.others(), .received = x.others(), .reduced = x.others()};
      const std::int64_t taken = x.n + x.ranks_behind() * x.block;
      return {
          .rounds = x.half_depth + 2, .messages = x.half_depth + 1, .sent = x.n, .received = taken, .reduced = taken};
    }
    default:
      return {.rounds = x.depth,
              .messages = 3 * x.depth,
              .sent = x.others(),
              .received = x.others(),
              .reduced = x.others()};
  }
}

Facts gather_facts(Algorithm algorithm, const Numbers& x) {
  if (algorithm == Algorithm::direct)
    return {.rounds = 1, .messages = x.p - 1, .sent = x.block, .received = x.others()};
  return {.rounds = x.half_depth, .messages = x.depth + 1, .sent = x.subtree() * x.block, .received = x.others()};
}

Facts scatter_facts(Algorithm algorithm, const Numbers& x) {
  Facts facts = gather_facts(algorithm, x);
  std::swap(facts.sent, facts.received);
  return facts;
}

Facts all_to_all_facts(Algorithm algorithm, const Numbers& x) {
  if (algorithm != Algorithm::bruck) {
    return {.rounds = algorithm == Algorithm::pairwise ? x.p / 2 : 1,
            .messages = x.p - 1,
            .sent = x.others(),
            .received = x.others()};
  }
  std::int64_t ways = 0;
  for (std::int64_t bit = 1; bit < x.p; bit *= 2)
    ways += x.p / (2 * bit) * bit + std::max<std::int64_t>(0, x.p % (2 * bit) - bit);
  // Every byte is also packed before it is sent, which costs about as much as reducing it.
  return {.rounds = x.depth, .messages = x.depth, .sent = ways * x.block, .received = ways * x.block};
}

Facts scan_facts(Algorithm algorithm, const Numbers& x) {
  if (algorithm == Algorithm::chain) {
    return {.rounds = x.p - 1,
            .messages = x.pieces,
            .sent = x.n,
            .received = x.n,
            .reduced = x.n,
            .fill = (x.p - 2) * x.piece,
            .segments = x.pieces,
            .neighbours = true};
  }
  return {.rounds = x.half_depth,
          .messages = x.depth,
          .sent = x.n * x.depth,
          .received = x.n * x.depth,
          .reduced = x.n * x.depth};
}

Facts exscan_facts(Algorithm algorithm, const Numbers& x) {
  Facts facts = scan_facts(algorithm, x);
  if (algorithm == Algorithm::chain) facts.reduced = x.p > 2 ? x.n : 0;
  if (algorithm == Algorithm::recursive_doubling) facts.reduced = x.n * std::max<std::int64_t>(0, 2 * x.depth - 2);
  return facts;
}

Facts facts_of(Verb verb, Algorithm algorithm, const Numbers& x) {
  switch (verb) {
    case Verb::all_reduce: return all_reduce_facts(algorithm, x);
    case Verb::reduce: return reduce_facts(algorithm, x);
    case Verb::broadcast: return broadcast_facts(algorithm, x);
    case Verb::all_gather: return all_gather_facts(algorithm, x);
    case Verb::gather: return gather_facts(algorithm, x);
    case Verb::reduce_scatter: return reduce_scatter_facts(algorithm, x);
    case Verb::scatter: return scatter_facts(algorithm, x);
    case Verb::all_to_all: return all_to_all_facts(algorithm, x);
    case Verb::scan: return scan_facts(algorithm, x);
    case Verb::exscan: return exscan_facts(algorithm, x);
    case Verb::permute: return {.rounds = 1, .messages = 1, .sent = x.n, .received = x.n};
    default: return {.rounds = x.depth, .messages = x.depth};  // barrier
  }
}

// What a pipeline cuts: a block for the ring, half of the array for the two trees, else the array.
std::int64_t cut_unit(Algorithm algorithm, std::int64_t bytes, int size) {
  if (algorithm == Algorithm::ring) return bytes / size;
  return algorithm == Algorithm::double_tree ? bytes / 2 : bytes;
}

Cost flat_cost(const CatalogRow& row, const Shape& shape, std::int64_t segment, const CostModel& model) {
  const Topology& where = shape.topology;
  if (where.size == 1) return {};
  const Numbers x(where.size, shape.bytes, cut_unit(row.algorithm, shape.bytes, where.size),
                  row.segments ? segment : 0);
  const Facts facts = facts_of(row.verb, row.algorithm, x);
  const CostModel::Link& link = where.nodes > 1 ? model.between : model.inside;
  // The ranks of a node share its link, unless only neighbours talk.
  const int streams = where.nodes > 1 && !facts.neighbours ? where.local_max : 1;
  const double moved =
      static_cast<double>(std::max(facts.sent, facts.received)) * streams + static_cast<double>(facts.fill);
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
                  moved * link.seconds_per_byte + reduced * model.reduce_seconds_per_byte};
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

Cost hierarchical_cost(const Shape& shape, const CostModel& model) {
  const Topology& where = shape.topology;
  const int lanes = where.local_min;
  const Topology inside = Topology::on_one_node(where.local_max);
  const Topology between{.size = where.nodes, .nodes = where.nodes, .local_min = 1, .local_max = 1};
  const std::int64_t n = shape.bytes, slice = n / lanes;
  std::vector<Cost> parts;
  const auto inner = [&](Verb verb, std::int64_t bytes) { parts.push_back(part(verb, bytes, inside, 1, model)); };
  const auto outer = [&](Verb verb, std::int64_t bytes) { parts.push_back(part(verb, bytes, between, lanes, model)); };
  switch (shape.verb) {
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
  Cost sum;
  for (const Cost& cost : parts) {
    sum.rounds += cost.rounds;
    sum.messages += cost.messages;
    sum.bytes_sent += cost.bytes_sent;
    sum.bytes_received += cost.bytes_received;
    sum.bytes_reduced += cost.bytes_reduced;
    sum.time += cost.time;
  }
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
  if (row.verb != shape.verb || (row.even_only && shape.uneven)) return false;
  // With one node, or one rank per node, two levels are one; a part of a hierarchical plan is never hierarchical itself.
  return row.algorithm != Algorithm::hierarchical || (shape.topology.nodes > 1 && shape.topology.local_max > 1);
}

Cost cost_of(const CatalogRow& row, const Shape& shape, std::int64_t segment, const CostModel& model) {
  return row.algorithm == Algorithm::hierarchical ? hierarchical_cost(shape, model)
                                                  : flat_cost(row, shape, segment, model);
}

}  // namespace tutti
