// catalog.cpp: the table of all algorithms.
// SPDX-License-Identifier: Apache-2.0
#include "plan/catalog.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tutti/error.hpp>

#include "plan/algorithms.hpp"

namespace tutti {

namespace {

using namespace algorithm;

constexpr CatalogRow rows[] = {
    {.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .write = ring_all_reduce, .segments = true},
    {.verb = Verb::reduce, .algorithm = Algorithm::binomial, .write = binomial_reduce},
    {.verb = Verb::reduce, .algorithm = Algorithm::chain, .write = chain_reduce, .segments = true},
    {.verb = Verb::broadcast, .algorithm = Algorithm::binomial, .write = binomial_broadcast},
    {.verb = Verb::broadcast, .algorithm = Algorithm::chain, .write = chain_broadcast, .segments = true},
    {.verb = Verb::all_gather, .algorithm = Algorithm::ring, .write = ring_all_gather, .segments = true},
    {.verb = Verb::all_gather, .algorithm = Algorithm::direct, .write = direct_all_gather},
    {.verb = Verb::gather, .algorithm = Algorithm::binomial, .write = binomial_gather},
    {.verb = Verb::gather, .algorithm = Algorithm::direct, .write = direct_gather},
    {.verb = Verb::reduce_scatter, .algorithm = Algorithm::ring, .write = ring_reduce_scatter, .segments = true},
    {.verb = Verb::reduce_scatter, .algorithm = Algorithm::pairwise, .write = pairwise_reduce_scatter},
    {.verb = Verb::scatter, .algorithm = Algorithm::binomial, .write = binomial_scatter},
    {.verb = Verb::scatter, .algorithm = Algorithm::direct, .write = direct_scatter},
    {.verb = Verb::all_to_all, .algorithm = Algorithm::pairwise, .write = pairwise_all_to_all},
    {.verb = Verb::all_to_all, .algorithm = Algorithm::direct, .write = direct_all_to_all},
    {.verb = Verb::scan, .algorithm = Algorithm::chain, .write = chain_scan, .segments = true},
    {.verb = Verb::exscan, .algorithm = Algorithm::chain, .write = chain_exscan, .segments = true},
    {.verb = Verb::permute, .algorithm = Algorithm::direct, .write = direct_permute},
    {.verb = Verb::barrier, .algorithm = Algorithm::dissemination, .write = dissemination_barrier},
};

constexpr std::array<std::string_view, 14> algorithm_names = {
    "automatic", "direct",   "ring",  "recursive_doubling", "halving_doubling", "circulant",     "binomial",
    "double_tree", "pairwise", "bruck", "chain",            "scatter_gather",   "dissemination", "hierarchical"};

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
  if (row.verb != spec.verb) return false;
  return !row.even_only || (spec.counts.empty() && spec.recv_counts.empty());
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
