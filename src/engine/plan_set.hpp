// plan_set.hpp: the plans of one prepared call: its own, and those of its sub-collectives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/plan_execution.hpp"
#include "plan/select.hpp"

namespace tutti {

/// Chooses algorithms by the group's table. One thread at a time.
class PlanSet final : public PlanSource {
 public:
  /// `table` outlives the set.
  explicit PlanSet(const Table& table) : table_(table) {}

  const Plan& plan_for(const Spec& spec, DType dtype) override;
  [[nodiscard]] std::size_t size() const { return plans_.size(); }

 private:
  struct Entry {
    Spec asked;                     // before the algorithm was chosen
    std::size_t element_bytes = 1;  // the choice depends on bytes
    Plan plan;
  };

  const Table& table_;
  std::vector<std::unique_ptr<Entry>> plans_;  // few: one for each level of the hierarchy
};

}  // namespace tutti
