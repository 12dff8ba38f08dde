// plan_cache.cpp: plans by the shape of their request, made once.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_cache.hpp"

#include "base/hash.hpp"

namespace tutti {

std::size_t PlanCache::HashOfKey::operator()(const Key& key) const {
  const Spec& spec = key.spec;
  Hash hash;
  hash.add(std::uint64_t(spec.verb) | std::uint64_t(spec.algorithm) << 8 | std::uint64_t(spec.finish) << 16 |
           std::uint64_t(spec.in_place) << 17 | std::uint64_t(key.element_bytes) << 32);
  hash.add(static_cast<std::uint64_t>(spec.count)).add(static_cast<std::uint64_t>(spec.root));
  for (const std::int64_t count : spec.counts) hash.add(static_cast<std::uint64_t>(count));
  for (const std::int64_t count : spec.recv_counts) hash.add(static_cast<std::uint64_t>(count));
  for (const auto& [source, destination] : spec.pairs) hash.add(std::uint64_t(source) << 32 | std::uint64_t(destination));
  return hash.value();
}

const Plan& PlanCache::plan_for(const Spec& spec, DType dtype) {
  looked_for_.spec = spec;
  looked_for_.element_bytes = size_of(dtype);
  if (const auto found = plans_.find(looked_for_); found != plans_.end()) return *found->second;
  Spec chosen = spec;
  if (chosen.algorithm == Algorithm::automatic) {
    const Choice choice = select(chosen, size_of(dtype), table_);
    chosen.algorithm = choice.algorithm;
    chosen.segment = choice.segment;
  }
  auto plan = std::make_unique<Plan>(make_plan(chosen));
  return *plans_.emplace(looked_for_, std::move(plan)).first->second;
}

void PlanCache::trim() {
  if (plans_.size() > plans_max) plans_.clear();
}

}  // namespace tutti
