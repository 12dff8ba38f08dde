// plan_set.cpp: the plans of one prepared call: its own, and those of its sub-collectives.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_set.hpp"

#include <algorithm>
#include <numeric>

namespace tutti {
namespace {

Shape shape_of(const Spec& spec, std::size_t element_bytes) {
  const std::int64_t even_count = has_blocks(spec.verb) ? spec.count * spec.size : spec.count;
  const std::int64_t count =
      spec.counts.empty() ? even_count : std::accumulate(spec.counts.begin(), spec.counts.end(), std::int64_t{0});
  return {.verb = spec.verb,
          .bytes = count * static_cast<std::int64_t>(element_bytes),
          .uneven = !spec.counts.empty(),
          .topology = Topology::of(spec.size, spec.node_of),
          .in_rank_order = spec.in_rank_order};
}

}  // namespace

const Plan& PlanSet::plan_for(const Spec& spec, DType dtype) {
  const std::size_t element_bytes = size_of(dtype);
  const auto found = std::ranges::find_if(
      plans_, [&](const auto& entry) { return entry->element_bytes == element_bytes && entry->asked == spec; });
  if (found != plans_.end()) return (*found)->plan;
  Spec chosen = spec;
  if (chosen.algorithm == Algorithm::automatic) {
    const Choice choice = select(shape_of(spec, element_bytes), table_);
    chosen.algorithm = choice.algorithm;
    chosen.segment = choice.segment(static_cast<std::int64_t>(element_bytes));
  }
  plans_.push_back(std::make_unique<Entry>(Entry{spec, element_bytes, make_plan(chosen)}));
  return plans_.back()->plan;
}

}  // namespace tutti
