// plan_executor.cpp: collectives by plans over a transport.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_executor.hpp"

#include <fmt/format.h>

#include "engine/plan_execution.hpp"
#include "engine/plan_set.hpp"

namespace tutti {

class PlanExecutor::PlanCall final : public PreparedCall {
 public:
  PlanCall(const Parts& parts, const ExecutionSpec& what)
      : medium_(parts.transport->name()),
        plans_(*parts.table),
        start_{.plan = &plans_.plan_for(what.spec, what.dtype),
               .dtype = what.dtype,
               .op = what.op,
               .divisor = what.divisor,
               .envelope = {.group = parts.facts->id, .epoch = parts.facts->epoch, .phase = what.phase},
               .world_of = parts.facts->world_of,
               .transport = parts.transport,
               .plans = &plans_,
               .local_peers = parts.local_peers,
               .trace = parts.trace} {}

  bool start(const Buffers& buffers, const Signature& signature) override {
    start_.input = buffers.input;
    start_.output = buffers.output;
    start_.envelope.signature = signature;
    execution_.start(start_);
    return execution_.poll();
  }
  bool poll() override { return execution_.poll(); }
  void cancel() override { execution_.cancel(); }
  [[nodiscard]] Progress progress() const override {
    Progress progress{.how = fmt::format("{} over {}", name_of(start_.plan->spec.algorithm), medium_),
                      .step = execution_.steps_done(),
                      .step_count = execution_.step_count()};
    execution_.add_waiting_for(progress.waiting_for);
    return progress;
  }

 private:
  std::string_view medium_;
  PlanSet plans_;
  PlanExecution::Start start_;
  PlanExecution execution_;
};

std::unique_ptr<PreparedCall> PlanExecutor::prepare(const ExecutionSpec& what) {
  return std::make_unique<PlanCall>(parts_, what);
}

}  // namespace tutti
