// plan_execution.hpp: one plan being run over a transport.
// SPDX-License-Identifier: Apache-2.0
//
// A step is *ready* when all steps it needs have ended, *active* while its transfer or its call is under way. Local steps
// (reduce, copy, …) run as soon as they are ready. Nothing here blocks: poll() looks at what is active, and goes on.
//
// An Execution is reused: once its vectors have grown to the largest plan it met, starting another one allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/error.hpp>
#include <tutti/transport.hpp>

#include "engine/aligned_buffer.hpp"
#include "engine/executor.hpp"
#include "plan/plan.hpp"
#include "record/step_trace.hpp"

namespace tutti {

/// Where the plans of sub-requests come from. The same spec gives the same plan on every rank.
class PlanSource {
 public:
  virtual ~PlanSource() = default;
  /// Fills in the algorithm where the spec leaves it open. The plan stays valid as long as the source.
  virtual const Plan& plan_for(const Spec& spec, DType dtype) = 0;
};

class PlanExecution {
 public:
  struct Start {
    const Plan* plan = nullptr;
    DType dtype = DType::uint8;
    Op op = Op::sum;
    double divisor = 1;  // what a finish step divides by
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    Envelope envelope;              // group, epoch, phase and signature of every message
    std::span<const int> world_of;  // rank in the group → rank in the world; outlives the execution
    Transport* transport = nullptr;
    PlanSource* plans = nullptr;
    Executor* local_peers = nullptr;     // serves the sub-requests whose members are exactly its own; null: none
    record::StepTrace* trace = nullptr;  // null: steps are not written down
  };

  PlanExecution();
  PlanExecution(const PlanExecution&) = delete;
  PlanExecution& operator=(const PlanExecution&) = delete;
  ~PlanExecution();

  /// Posts what can start now. Only when idle: never started, ended, or cancelled.
  void start(const Start& start);
  /// True once every step has ended. Throws TransferFailed.
  bool poll();
  void cancel();

  [[nodiscard]] std::string_view how() const;
  [[nodiscard]] int steps_done() const { return static_cast<int>(done_); }
  [[nodiscard]] int step_count() const { return start_.plan ? static_cast<int>(start_.plan->steps.size()) : 0; }
  /// Adds the ranks (of the spec) that it waits for now, each once.
  void add_waiting_for(std::vector<int>& ranks) const;

 private:
  struct SubExecution;

  [[nodiscard]] std::int64_t bytes_of(const Piece& piece) const;
  [[nodiscard]] const std::byte* at(const Piece& piece) const;
  [[nodiscard]] std::byte* writable(const Piece& piece) const { return const_cast<std::byte*>(at(piece)); }
  void run_ready();
  [[nodiscard]] bool begin(std::uint32_t index);
  [[nodiscard]] bool begin_transfer(std::uint32_t index);
  template <class Function>
  bool in_sub_collective(const SubCollective& call, Function function);
  [[nodiscard]] bool begin_call(std::uint32_t index);
  [[nodiscard]] bool is_served_by_executor(const SubCollective& call) const;
  [[nodiscard]] bool is_its_turn(std::uint32_t call_index) const;
  void run_local(const Step& step);
  [[nodiscard]] bool has_ended(std::uint32_t index);
  void complete(std::uint32_t index);
  void note_begin(std::uint32_t index);
  void note_end(std::uint32_t index) const;

  Start start_;
  std::size_t done_ = 0;
  std::vector<std::uint32_t> needs_;  // per step: how many steps it still waits for
  std::vector<std::uint32_t> ready_;  // a queue, from ready_head_ on
  std::size_t ready_head_ = 0;
  std::vector<std::uint32_t> active_;
  std::vector<Transfer> transfers_;   // per step; in place while pending
  std::vector<std::uint64_t> begun_;  // per step, if they are written down: ticks
  std::vector<std::unique_ptr<SubExecution>> calls_;
  std::vector<std::uint32_t> held_;  // ready, but an earlier call on the same executor has not started
  std::size_t executor_calls_ = 0;   // calls on the executor that have started
  AlignedBuffer scratch_;
};

}  // namespace tutti
