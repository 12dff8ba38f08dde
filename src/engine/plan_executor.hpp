// plan_executor.hpp: collectives by plans over a transport: the executor that serves every group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <tutti/backend.hpp>
#include <tutti/transport.hpp>

#include "engine/executor.hpp"
#include "plan/select.hpp"
#include "record/step_trace.hpp"

namespace tutti {

class PlanExecutor final : public Executor {
 public:
  struct Parts {
    const GroupFacts* facts = nullptr;  // these three outlive the executor
    const Table* table = nullptr;
    Transport* transport = nullptr;
    Executor* local_peers = nullptr;     // serves the sub-collectives whose members are exactly its own; null: none
    record::StepTrace* trace = nullptr;  // null: steps are not written down
  };
  explicit PlanExecutor(const Parts& parts) : parts_(parts) {}

  [[nodiscard]] std::span<const int> members() const override { return parts_.facts->world_of; }
  std::unique_ptr<PreparedCall> prepare(const ExecutionSpec& what) override;
  [[nodiscard]] std::string_view medium() const override { return parts_.transport->name(); }

 private:
  class PlanCall;
  Parts parts_;
};

}  // namespace tutti
