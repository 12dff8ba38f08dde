// plan_cache.hpp: plans by the shape of their request, made once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "engine/plan_execution.hpp"
#include "plan/select.hpp"

namespace tutti {

/// Chooses the algorithm by the group's table, and keeps the plans that were made. One thread at a time.
class PlanCache final : public PlanSource {
 public:
  explicit PlanCache(Table table) : table_(std::move(table)) {}

  const Plan& plan_for(const Spec& spec, DType dtype) override;
  /// Lets go of all plans when there are too many. Only while nobody runs one.
  void trim();
  [[nodiscard]] std::size_t size() const { return plans_.size(); }

 private:
  struct Key {
    Spec spec;
    std::size_t element_bytes = 1;  // the choice of algorithm depends on bytes
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct HashOfKey {
    std::size_t operator()(const Key& key) const;
  };
  static constexpr std::size_t plans_max = 512;

  Table table_;
  Key looked_for_;  // kept, so that looking up allocates nothing
  std::unordered_map<Key, std::unique_ptr<Plan>, HashOfKey> plans_;
};

}  // namespace tutti
