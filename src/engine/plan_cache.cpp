// plan_cache.cpp: plans by the shape of their request, made once.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_cache.hpp"

#include <numeric>

#include "base/hash.hpp"

namespace tutti {
namespace {

Shape shape_of(const Spec& spec, std::size_t element_bytes) {
  const std::int64_t even_count = has_blocks(spec.verb) ? spec.count * spec.size : spec.count;
  const std::int64_t count =
      spec.counts.empty() ? even_count : std::accumulate(spec.counts.begin(), spec.counts.end(), std::int64_t{0});
  return {.verb = spec.verb,
          .bytes = count * static_cast<std::int64_t>(element_bytes),
          .uneven = !spec.counts.empty(),
          .topology = Topology::of(spec.size, spec.node_of)};
}

}  // namespace

std::size_t PlanCache::HashOfKey::operator()(const Key& key) const {
  const Spec& spec = key.spec;
  Hash hash;
  hash.add(std::uint64_t(spec.verb) | std::uint64_t(spec.algorithm) << 8 | std::uint64_t(spec.finish) << 16 |
           std::uint64_t(spec.in_place) << 17 | std::uint64_t(key.element_bytes) << 32);
  hash.add(static_cast<std::uint64_t>(spec.count)).add(static_cast<std::uint64_t>(spec.root));
  for (const std::int64_t count : spec.counts) hash.add(static_cast<std::uint64_t>(count));
  for (const std::int64_t count : spec.recv_counts) hash.add(static_cast<std::uint64_t>(count));
  for (const auto& [source, destination] : spec.pairs)
    hash.add(std::uint64_t(source) << 32 | std::uint64_t(destination));
  return hash.value();
}

const Plan& PlanCache::plan_for(const Spec& spec, DType dtype) {
  looked_for_.spec = spec;
  looked_for_.element_bytes = size_of(dtype);
  if (const auto found = plans_.find(looked_for_); found != plans_.end()) return *found->second;
  Spec chosen = spec;
  if (chosen.algorithm == Algorithm::automatic) {
    const Choice choice = select(shape_of(spec, size_of(dtype)), table_);
    chosen.algorithm = choice.algorithm;
    chosen.segment = choice.segment(static_cast<std::int64_t>(size_of(dtype)));
  }
  auto plan = std::make_unique<Plan>(make_plan(chosen));
  return *plans_.emplace(looked_for_, std::move(plan)).first->second;
}

void PlanCache::trim() {
  if (plans_.size() > plans_max) plans_.clear();
}

}  // namespace tutti
