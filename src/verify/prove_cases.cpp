// prove_cases.cpp: the grid of specs that prove_plans works through.
// SPDX-License-Identifier: Apache-2.0
//
// Per size: counts 0 to 3·size+1 (of the whole array, or of one block up to 4, where a block per rank already makes
// 3·size+1 elements), patterns of uneven counts, all roots, segments, in place on all ranks, on none and on some (for
// verbs with a root in turn), with and without a finishing touch in turn, in
// the order of ranks or not where the algorithm knows both, and for hierarchical algorithms several
// placements of ranks on nodes.
#include "verify/prove_cases.hpp"

#include <algorithm>
#include <numeric>

#include "verify/symbol.hpp"

namespace tutti {

namespace {

enum class Places { none, all, some };

std::vector<std::int64_t> counts_for(Verb verb, int size) {
  if (verb == Verb::barrier) return {0};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(has_blocks(verb) ? 5 : 3 * size + 2));
  std::iota(counts.begin(), counts.end(), 0);
  return counts;
}

// Uneven blocks: increasing, one for all, every other one empty, and two pseudo-random patterns.
std::vector<std::vector<std::int64_t>> uneven_counts(int size) {
  std::vector<std::vector<std::int64_t>> patterns(5, std::vector<std::int64_t>(static_cast<std::size_t>(size)));
  for (int rank = 0; rank < size; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    patterns[0][i] = rank % 5;
    patterns[1][i] = rank == size / 2 ? 3 * size + 1 : 0;
    patterns[2][i] = rank % 2 == 0 ? 0 : 3;
    patterns[3][i] = static_cast<std::int64_t>(mix(i, 5) % 4);
    patterns[4][i] = static_cast<std::int64_t>(mix(i, 6) % 7);
  }
  return patterns;
}

std::int64_t between(int from, int to, std::uint64_t pattern) {  // uneven all_to_all
  if (pattern == 0) return (from + 2 * to) % 4;
  return static_cast<std::int64_t>(mix(mix(std::uint64_t(from), std::uint64_t(to)), pattern) % 5);
}

// Placements on nodes: one node, each its own, blocks of two and four, round robin, unequal, scattered.
std::vector<std::vector<int>> placements(int size) {
  std::vector<std::vector<int>> all(7, std::vector<int>(static_cast<std::size_t>(size)));
  for (int rank = 0; rank < size; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    all[0][i] = 0;
    all[1][i] = rank;
    all[2][i] = rank / 2;
    all[3][i] = rank / 4;
    all[4][i] = rank % 3;
    all[5][i] = rank < size / 2 ? 0 : rank < size - 1 ? 1 : 2;
    all[6][i] = static_cast<int>(mix(i, 7) % 4);
  }
  return all;
}

std::vector<std::vector<std::pair<int, int>>> permutations(int size) {
  std::vector<std::vector<std::pair<int, int>>> all(5);
  for (int rank = 0; rank < size; ++rank) {
    all[0].emplace_back(rank, (rank + 1) % size);
    all[1].emplace_back(rank, size - 1 - rank);
    if (rank % 2 == 0) all[2].emplace_back(rank, size - 1 - rank);
    if (rank + 1 < size) all[3].emplace_back(rank, rank + 1);
  }
  return all;  // the last one is empty: nothing is sent at all
}

// All shapes of a verb: counts, patterns, pairs, placements; rank, root, segment and in_place are set later.
std::vector<Spec> shapes(const CatalogRow& row, int size) {
  std::vector<Spec> specs;
  Spec spec{.verb = row.verb, .algorithm = row.algorithm, .size = size};
  for (const std::int64_t count : counts_for(row.verb, size)) {
    spec.count = count;
    specs.push_back(spec);
  }
  if (has_blocks(row.verb) && !row.even_only) {
    spec.count = 0;
    for (const auto& counts : uneven_counts(size)) {
      spec.counts = counts;
      specs.push_back(spec);
    }
  }
  const auto widen = [&](const auto& variants, auto member) {
    for (const Spec& narrow : std::exchange(specs, {})) {
      for (const auto& variant : variants) {
        specs.push_back(narrow);
        specs.back().*member = variant;
      }
    }
  };
  if (row.verb == Verb::permute) widen(permutations(size), &Spec::pairs);
  if (row.algorithm == Algorithm::hierarchical) widen(placements(size), &Spec::node_of);
  return specs;
}

Case case_of(Spec spec, Places places) {
  Case ranks;
  ranks.reserve(static_cast<std::size_t>(spec.size));
  const bool personal = spec.verb == Verb::all_to_all && !spec.counts.empty();
  const auto pattern = personal ? static_cast<std::uint64_t>(spec.counts.back() % 3) : 0;
  for (spec.rank = 0; spec.rank < spec.size; ++spec.rank) {
    spec.in_place = places == Places::all || (places == Places::some && mix(std::uint64_t(spec.rank), 8) % 2 == 0);
    ranks.push_back(spec);
    for (int peer = 0; personal && peer < spec.size; ++peer) {
      ranks.back().recv_counts.push_back(between(peer, spec.rank, pattern));
      ranks.back().counts[static_cast<std::size_t>(peer)] = between(spec.rank, peer, pattern);
    }
  }
  return ranks;
}

}  // namespace

void for_each_case(const CatalogRow& row, int size, const Grid& grid, const std::function<void(const Case&)>& visit) {
  const int roots = has_root(row.verb) ? size : 1;
  // A segment of two levels is three whole collectives: so many of them prove no more than some do.
  const std::vector<std::int64_t> segments = !row.segments ? std::vector<std::int64_t>{0}
                                             : row.algorithm == Algorithm::hierarchical
                                                 ? std::vector<std::int64_t>{0, 11}
                                                 : std::vector<std::int64_t>{0, 1, 2, 5};
  constexpr Places all_places[] = {Places::none, Places::all, Places::some};
  const std::vector<Spec> specs = shapes(row, size);
  // A sample still sees some cases of every row and size.
  const std::size_t cases = specs.size() * segments.size() * static_cast<std::size_t>(roots == 1 ? 3 : roots);
  const std::uint64_t one_in = std::clamp<std::uint64_t>(cases / 8, 1, static_cast<std::uint64_t>(grid.sample));
  std::uint64_t number = mix(mix(grid.seed, static_cast<std::uint64_t>(size)),
                             mix(static_cast<std::uint64_t>(row.verb), static_cast<std::uint64_t>(row.algorithm)));
  const auto visit_some = [&](Spec& spec, Places places) {
    spec.finish = reduces(row.verb) && (number & 1) != 0;  // in turn: it adds steps, but no choices
    spec.in_rank_order = row.in_rank_order && (mix(number, 10) & 1) != 0;
    if (mix(++number, 9) % one_in == 0) visit(case_of(spec, places));
  };
  for (Spec spec : specs) {
    for (const std::int64_t segment : segments) {
      spec.segment = segment;
      if (roots == 1) {
        for (const Places places : all_places) visit_some(spec, places);
        continue;
      }
      for (spec.root = 0; spec.root < roots; ++spec.root) {  // every root, and in place or not in turn
        visit_some(spec, all_places[(spec.root + spec.count + segment) % 3]);
      }
    }
  }
}

}  // namespace tutti
