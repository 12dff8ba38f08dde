// catalog.cpp: the table of all algorithms.
// SPDX-License-Identifier: Apache-2.0
#include "plan/catalog.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tutti/error.hpp>

#include "plan/algorithms.hpp"
#include "plan/segment_buffers.hpp"

namespace tutti {

namespace {

using namespace algorithm;

// Declared bounds of scratch. `whole` is the caller's larger array, by which rooted verbs are the same on every rank.
std::int64_t whole(const Spec& s) {
  const bool blocks =
      s.verb == Verb::all_gather || s.verb == Verb::gather || s.verb == Verb::reduce_scatter || s.verb == Verb::scatter;
  return blocks ? blocks_of(s).total() : std::max(input_count(s), output_count(s));
}
std::int64_t no_scratch(const Spec&) { return 0; }
std::int64_t two_blocks(const Spec& s) {
  return 2 * (s.verb == Verb::all_reduce ? Blocks::split(s.count, s.size) : blocks_of(s)).longest();
}
std::int64_t two_blocks_or_all(const Spec& s) {
  return s.in_rank_order ? s.size * blocks_of(s).longest() : two_blocks(s);
}
std::int64_t segment_of(const Spec& s) { return s.segment > 0 ? std::min(s.segment, s.count) : s.count; }
std::int64_t slots(const Spec& s) { return SegmentBuffers::max * segment_of(s); }
std::int64_t two_slots(const Spec& s) { return 2 * slots(s); }
std::int64_t four_slots(const Spec& s) { return 4 * slots(s); }
std::int64_t once(const Spec& s) { return s.count; }
std::int64_t twice(const Spec& s) { return 2 * s.count; }
std::int64_t thrice(const Spec& s) { return 3 * s.count; }
std::int64_t whole_once(const Spec& s) { return whole(s); }
std::int64_t whole_twice(const Spec& s) { return 2 * whole(s); }
std::int64_t whole_thrice(const Spec& s) { return 3 * whole(s); }
std::int64_t if_in_place(const Spec& s) { return s.in_place ? output_count(s) : 0; }
std::int64_t half_per_round(const Spec& s) { return (ceil_log2(s.size) + 2) * (s.size / 2) * s.count; }

constexpr CatalogRow rows[] = {
    {Verb::all_reduce, Algorithm::ring, ring_all_reduce, two_blocks, false, true},
    {Verb::all_reduce, Algorithm::recursive_doubling, recursive_doubling_all_reduce, twice, false, false, true},
    {Verb::all_reduce, Algorithm::halving_doubling, halving_doubling_all_reduce, once, false, false, true},
    {Verb::all_reduce, Algorithm::circulant, circulant_all_reduce, thrice},
    {Verb::all_reduce, Algorithm::double_tree, double_tree_all_reduce, four_slots, false, true},
    {Verb::all_reduce, Algorithm::hierarchical, hierarchical_all_reduce, no_scratch, false, true},
    {Verb::reduce, Algorithm::binomial, binomial_reduce, thrice, false, false, true},
    {Verb::reduce, Algorithm::chain, chain_reduce, slots, false, true},
    {Verb::reduce, Algorithm::double_tree, double_tree_reduce, four_slots, false, true},
    {Verb::reduce, Algorithm::scatter_gather, scatter_gather_reduce, thrice},
    {Verb::reduce, Algorithm::hierarchical, hierarchical_reduce, once, false, true},
    {Verb::broadcast, Algorithm::binomial, binomial_broadcast, no_scratch},
    {Verb::broadcast, Algorithm::chain, chain_broadcast, no_scratch, false, true},
    {Verb::broadcast, Algorithm::double_tree, double_tree_broadcast, no_scratch, false, true},
    {Verb::broadcast, Algorithm::scatter_gather, scatter_gather_broadcast, no_scratch},
    {Verb::broadcast, Algorithm::hierarchical, hierarchical_broadcast, no_scratch, false, true},
    {Verb::all_gather, Algorithm::ring, ring_all_gather, no_scratch, false, true},
    {Verb::all_gather, Algorithm::direct, direct_all_gather, no_scratch},
    {Verb::all_gather, Algorithm::recursive_doubling, recursive_doubling_all_gather, no_scratch},
    {Verb::all_gather, Algorithm::circulant, circulant_all_gather, no_scratch},
    {Verb::all_gather, Algorithm::hierarchical, hierarchical_all_gather, whole_once},
    {Verb::gather, Algorithm::binomial, binomial_gather, whole_once},
    {Verb::gather, Algorithm::direct, direct_gather, no_scratch},
    {Verb::gather, Algorithm::hierarchical, hierarchical_gather, whole_twice},
    {Verb::reduce_scatter, Algorithm::ring, ring_reduce_scatter, two_blocks, false, true},
    {Verb::reduce_scatter, Algorithm::pairwise, pairwise_reduce_scatter, two_blocks_or_all, false, false, true},
    {Verb::reduce_scatter, Algorithm::halving_doubling, halving_doubling_reduce_scatter, whole_twice},
    {Verb::reduce_scatter, Algorithm::circulant, circulant_reduce_scatter, whole_thrice},
    {Verb::reduce_scatter, Algorithm::hierarchical, hierarchical_reduce_scatter, whole_thrice},
    {Verb::scatter, Algorithm::binomial, binomial_scatter, whole_once},
    {Verb::scatter, Algorithm::direct, direct_scatter, no_scratch},
    {Verb::scatter, Algorithm::hierarchical, hierarchical_scatter, whole_twice},
    {Verb::all_to_all, Algorithm::pairwise, pairwise_all_to_all, if_in_place},
    {Verb::all_to_all, Algorithm::direct, direct_all_to_all, if_in_place},
    {Verb::all_to_all, Algorithm::bruck, bruck_all_to_all, half_per_round, true},
    {Verb::scan, Algorithm::chain, chain_scan, slots, false, true, true},
    {Verb::scan, Algorithm::recursive_doubling, recursive_doubling_scan, twice, false, false, true},
    {Verb::exscan, Algorithm::chain, chain_exscan, two_slots, false, true, true},
    {Verb::exscan, Algorithm::recursive_doubling, recursive_doubling_exscan, thrice, false, false, true},
    {Verb::permute, Algorithm::direct, direct_permute, if_in_place},
    {Verb::barrier, Algorithm::dissemination, dissemination_barrier, no_scratch},
    {Verb::barrier, Algorithm::hierarchical, hierarchical_barrier, no_scratch},
};

constexpr std::array<std::string_view, 14> algorithm_names = {
    "automatic", "direct", "ring",  "recursive_doubling", "halving_doubling", "circulant",   "binomial", "double_tree",
    "pairwise",  "bruck",  "chain", "scatter_gather",     "dissemination",    "hierarchical"};

}  // namespace

std::span<const CatalogRow> catalog() { return rows; }

std::span<const CatalogRow> catalog(Verb verb) {
  const auto* first = std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.verb == verb; });
  const auto* last = std::find_if(first, std::end(rows), [&](const auto& row) { return row.verb != verb; });
  return {first, last};
}

const CatalogRow* find_algorithm(Verb verb, Algorithm algorithm) {
  for (const CatalogRow& row : catalog(verb)) {
    if (row.algorithm == algorithm) return &row;
  }
  return nullptr;
}

bool serves(const CatalogRow& row, const Spec& spec) {
  if (row.verb != spec.verb || (spec.in_rank_order && !row.in_rank_order)) return false;
  return !row.even_only || (spec.counts.empty() && spec.recv_counts.empty());
}

std::int64_t scratch_max(const Spec& spec) {
  if (spec.size == 1) return 0;
  const CatalogRow* row =
      spec.algorithm == Algorithm::automatic ? catalog(spec.verb).data() : find_algorithm(spec.verb, spec.algorithm);
  return row == nullptr ? 0 : row->scratch_max(spec);
}

std::string_view name_of(Algorithm algorithm) {
  const auto index = static_cast<std::size_t>(algorithm);
  return index < algorithm_names.size() ? algorithm_names[index] : "unknown algorithm";
}

Algorithm algorithm_from_name(std::string_view name) {
  for (std::size_t i = 0; i < algorithm_names.size(); ++i) {
    if (algorithm_names[i] == name) return static_cast<Algorithm>(i);
  }
  throw InvalidArgument(
      fmt::format("\"{}\" is not an algorithm; the algorithms are {}", name, fmt::join(algorithm_names, ", ")));
}

}  // namespace tutti
