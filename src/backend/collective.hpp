// collective.hpp: one request on the native backend: sizes if need be, then packing, the plan, and unpacking.
// SPDX-License-Identifier: Apache-2.0
//
// Arrays that are contiguous are used where they lie. An input is *staged* (copied into a buffer of the task) when it is
// strided, must be multiplied first (premul), or holds small floats that are to be reduced: those are widened to float32 for
// the whole plan and rounded once at the end, so that the result does not depend on the algorithm's number of hops. An executor
// adds them in float32 by itself, and gets them as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tutti/backend.hpp>

#include "backend/block_layout.hpp"
#include "engine/plan_execution.hpp"

namespace tutti {

class NativeBackend;

class Collective final : public Task {
 public:
  explicit Collective(NativeBackend& backend) : backend_(backend) {}

  void start(const Request& request);
  /// The request's execution has been started by somebody else.
  void adopt(const Request& request, Execution& execution);
  /// What the executor got for the last request, if the caller's arrays were used where they lie: a request like it may be
  /// given to the executor in the same way.
  [[nodiscard]] std::optional<ExecutionStart> direct() const;
  bool poll() override;
  void cancel() override;
  [[nodiscard]] Progress progress() const override;
  void release() override;

 private:
  enum class Stage : std::uint8_t { idle, sizes, execution, done };

  void start_size_exchange();
  void take_sizes();
  void start_execution();
  void finish_execution();

  void lay_out_execution();
  [[nodiscard]] bool works_in_place(const std::byte* input, const std::byte* output) const;
  void fill_spec();
  void fill_block_counts();
  const std::byte* stage_input();
  std::byte* stage_output(const std::byte* input);
  void pack_slices(const Slices& blocks, std::byte* to) const;
  void unpack_slices(const std::byte* from, const Slices& blocks) const;
  [[nodiscard]] Slices input_slices() const;
  [[nodiscard]] Slices output_slices() const;
  void run(const Spec& spec, DType dtype, const std::byte* input, std::byte* output, std::uint32_t phase);
  [[nodiscard]] ExecutionStart execution_start(const Spec& spec, DType dtype) const;
  [[nodiscard]] bool poll_part();
  void give_back();

  NativeBackend& backend_;
  Stage stage_ = Stage::idle;
  Request request_;
  BlockLayout layout_;
  Spec spec_;                           // of the execution; kept, so that a repeated call allocates nothing
  bool is_direct_ = false;              // no array was staged
  bool is_laid_out_ = false;            // layout and spec are those of a request like this one
  DType wire_dtype_ = DType::uint8;     // float32 where small floats are widened
  std::byte* staged_output_ = nullptr;  // where the plan's output lies, if not in the caller's array
  AlignedBuffer input_stage_, output_stage_, narrow_stage_;
  std::vector<std::int64_t> header_, headers_;
  Spec size_spec_;
  PlanExecution plan_execution_;
  Execution* part_ = nullptr;  // under way: the execution, or the executor's
};

}  // namespace tutti
