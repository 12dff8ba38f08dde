// cost_facts.cpp: rounds, messages and bytes of each algorithm, in closed form.
// SPDX-License-Identifier: Apache-2.0
//
// cost_test compares them with what the plans really do.
#include "plan/cost_facts.hpp"

namespace tutti {

namespace {

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
              .adjacent_only = true};
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
              .adjacent_only = true};
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
              .adjacent_only = true};
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
              .adjacent_only = true};
    case Algorithm::direct:
      return {.rounds = 1, .messages = x.p - 1, .sent = x.others(), .received = x.others(), .has_incast = x.p > 2};
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
              .adjacent_only = true};
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
            .received = x.others(),
            .has_incast = algorithm == Algorithm::direct && x.p > 2};
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
            .adjacent_only = true};
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

}  // namespace

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

}  // namespace tutti
