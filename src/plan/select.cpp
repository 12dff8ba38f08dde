// select.cpp: which algorithm serves a request.
// SPDX-License-Identifier: Apache-2.0
#include "plan/select.hpp"

#include <algorithm>

namespace tutti {

namespace {

constexpr std::int64_t segment_bytes_min = 4 << 10, segment_bytes_max = 4 << 20;
constexpr std::int64_t two_level_segment_bytes_min = 1 << 20;  // three whole collectives each, of a slice per lane

Candidate best_segment(const CatalogRow& row, const Shape& shape, const CostModel& model) {
  Candidate best{.choice = {.algorithm = row.algorithm}, .cost = cost_of(row, shape, 0, model)};
  if (!row.segments) return best;
  const bool two_levels = row.algorithm == Algorithm::hierarchical;
  for (std::int64_t segment = two_levels ? two_level_segment_bytes_min : segment_bytes_min;
       segment <= segment_bytes_max && segment < shape.bytes; segment *= 2) {
    const Cost cost = cost_of(row, shape, segment, model);
    if (cost.time < best.cost.time)
      best = {.choice = {.algorithm = row.algorithm, .segment_bytes = segment}, .cost = cost};
  }
  return best;
}

bool fits(const TableRow& row, const Shape& shape) {
  return row.verb == shape.verb && shape.topology.size >= row.ranks_min && shape.topology.size <= row.ranks_max &&
         shape.bytes >= row.bytes_min && shape.bytes <= row.bytes_max;
}

}  // namespace

std::vector<Candidate> candidates(const Shape& shape, const Table& table) {
  std::vector<Candidate> all;
  for (const CatalogRow& row : catalog(shape.verb)) {
    if (serves(row, shape)) all.push_back(best_segment(row, shape, table.model));
  }
  // Stable: of two that cost the same, the catalogue's first.
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost.time < b.cost.time; });
  return all;
}

Choice select(const Shape& shape, const Table& table) {
  if (shape.verb == Verb::all_to_all && shape.uneven) return {.algorithm = Algorithm::pairwise};
  for (const TableRow& row : table.rows) {
    if (!fits(row, shape)) continue;
    const CatalogRow* wanted = find_algorithm(shape.verb, row.choice.algorithm);
    if (wanted != nullptr && serves(*wanted, shape)) return row.choice;
  }
  const std::vector<Candidate> all = candidates(shape, table);
  return all.empty() ? Choice{} : all.front().choice;
}

}  // namespace tutti
