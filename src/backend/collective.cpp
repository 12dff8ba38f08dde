// collective.cpp: one request on the native backend: sizes if need be, then packing, the plan, and unpacking.
// SPDX-License-Identifier: Apache-2.0
#include "backend/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include <tutti/error.hpp>

#include "backend/native.hpp"
#include "backend/same_shape.hpp"
#include "kernel/kernel.hpp"

namespace tutti {
namespace {

constexpr std::uint32_t execution_phase = 2;  // 1 is the size exchange

bool all_equal(const std::vector<std::int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

std::int64_t count_of(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

void Collective::start(const Request& request) {
  is_laid_out_ = is_laid_out_ && !request.sizes_follow && same_shape(request, request_);
  request_ = request;
  if (request_.sizes_follow) {
    start_size_exchange();
  } else {
    start_execution();
  }
}

bool Collective::poll() {
  if (stage_ == Stage::sizes && poll_part()) {
    take_sizes();
    start_execution();
  }
  if (stage_ == Stage::execution && poll_part()) finish_execution();
  return stage_ == Stage::done;
}

bool Collective::poll_part() {
  if (!part_->poll()) return false;
  give_back();
  return true;
}

void Collective::give_back() {
  if (part_ != nullptr && part_ != &plan_execution_) backend_.executors().whole->release(*part_);
  part_ = nullptr;
}

void Collective::cancel() {
  if (part_ != nullptr) part_->cancel();
  give_back();
  stage_ = Stage::idle;
}

void Collective::release() {
  stage_ = Stage::idle;
  request_.allocate = nullptr;  // lets go of what the caller's function holds
  backend_.take_back(*this);
}

Progress Collective::progress() const {
  Progress where;
  if (part_ == nullptr) return where;
  const std::string_view over = part_ == &plan_execution_ ? backend_.transport().name() : "shared memory";
  where.how = fmt::format("{} over {}", stage_ == Stage::sizes ? "size exchange" : part_->how(), over);
  where.step = part_->steps_done();
  where.step_count = part_->step_count();
  part_->add_waiting_for(where.waiting_for);
  return where;
}

ExecutionStart Collective::execution_start(const Spec& spec, DType dtype) const {
  return {.spec = &spec,
          .dtype = dtype,
          .op = request_.op.kind(),
          .divisor = static_cast<double>(backend_.facts().size),
          .signature = request_.signature,
          .phase = execution_phase};
}

void Collective::adopt(const Request& request, Execution& execution) {
  is_laid_out_ = false;
  staged_output_ = nullptr;
  request_ = request;
  stage_ = Stage::execution;
  part_ = &execution;
}

std::optional<ExecutionStart> Collective::direct() const {
  if (!is_direct_ || backend_.executors().whole == nullptr) return std::nullopt;
  return execution_start(spec_, wire_dtype_);
}

void Collective::run(const Spec& spec, DType dtype, const std::byte* input, std::byte* output, std::uint32_t phase) {
  const GroupFacts& facts = backend_.facts();
  if (const auto& executor = backend_.executors().whole) {
    ExecutionStart execution = execution_start(spec, dtype);
    execution.input = input;
    execution.output = output;
    execution.phase = phase;
    part_ = &executor->start(execution);
    return;
  }
  const Plan& plan = backend_.plans().plan_for(spec, dtype);
  part_ = &plan_execution_;
  plan_execution_.start(
      {.plan = &plan,
       .dtype = dtype,
       .op = request_.op.kind(),
       .divisor = static_cast<double>(facts.size),
       .input = input,
       .output = output,
       .envelope = {.group = facts.id, .epoch = facts.epoch, .phase = phase, .signature = request_.signature},
       .world_of = facts.world_of,
       .transport = &backend_.transport(),
       .plans = &backend_.plans(),
       .local_peers = backend_.executors().local_peers.get()});
}

void Collective::fill_spec() {
  const GroupFacts& facts = backend_.facts();
  spec_.verb = request_.verb;
  spec_.rank = facts.rank;
  spec_.size = facts.size;
  spec_.root = has_root(request_.verb) ? request_.root : 0;
  spec_.count = 0;
  spec_.counts.clear();
  spec_.recv_counts.clear();
  spec_.pairs.clear();
  spec_.finish = reduces(request_.verb) && request_.op.kind() == Op::Kind::mean;
  spec_.node_of = facts.node_of;
  if (request_.verb == Verb::permute) spec_.pairs = request_.pairs;
  if (has_blocks(request_.verb)) {
    fill_block_counts();
  } else if (request_.verb != Verb::barrier) {
    spec_.count = count_of(layout_.output_shape);
  }
}

/// Counts in elements, from sizes along the axis: the other axes are the same for all ranks.
void Collective::fill_block_counts() {
  const bool is_joined = joins(request_.verb);
  const View& mine = request_.input.present() ? request_.input : request_.output;
  const bool one_entry_each = request_.stack && (is_joined || !layout_.input_in_blocks);
  const int axis = one_entry_each ? -1 : is_joined ? layout_.output_axis : layout_.input_axis;
  std::int64_t per_entry = 1;
  for (int i = 0; i < mine.axes(); ++i) per_entry *= i == axis ? 1 : mine.shape()[static_cast<std::size_t>(i)];

  spec_.counts = is_joined ? layout_.output_sizes : layout_.input_sizes;
  if (spec_.counts.empty())
    spec_.counts.assign(static_cast<std::size_t>(spec_.size), 1);  // a stacked scatter, off the root
  for (auto& count : spec_.counts) count *= per_entry;
  if (request_.verb == Verb::all_to_all) {
    std::int64_t per_received = 1;
    for (std::size_t i = 0; i < layout_.output_shape.size(); ++i) {
      per_received *= static_cast<int>(i) == layout_.output_axis ? 1 : layout_.output_shape[i];
    }
    spec_.recv_counts = layout_.output_sizes;
    for (auto& count : spec_.recv_counts) count *= per_received;
  }
  // One rank's counts of an uneven exchange may happen to be equal: what the ranks agreed on decides, not the numbers.
  const bool even = request_.verb == Verb::all_to_all ? request_.sizes.empty() : all_equal(spec_.counts);
  if (even) {
    spec_.count = spec_.counts[0];
    spec_.counts.clear();
    spec_.recv_counts.clear();
  }
}

void Collective::lay_out_execution() {
  lay_out(request_, backend_.facts().rank, backend_.facts().size, layout_);
  const DType dtype = request_.input.present() ? request_.input.dtype() : request_.output.dtype();
  if (layout_.has_output && !request_.output.present() && request_.allocate) {
    request_.output = request_.allocate(dtype, layout_.output_shape, request_.kind);
  }
  // At the door the sizes were not known yet.
  if (request_.sizes_follow && layout_.has_output &&
      !std::ranges::equal(request_.output.shape(), layout_.output_shape)) {
    throw InvalidArgument(fmt::format("the result has shape [{}] but the array for it has shape [{}]",
                                      fmt::join(layout_.output_shape, ", "), fmt::join(request_.output.shape(), ", ")));
  }
  const bool computes = backend_.executors().whole == nullptr || request_.op.kind() == Op::Kind::mean ||
                        request_.op.kind() == Op::Kind::premul;
  wire_dtype_ = reduces(request_.verb) && is_small_float(dtype) && computes ? DType::float32 : dtype;
  fill_spec();
}

bool Collective::works_in_place(const std::byte* input, const std::byte* output) const {
  if (input == nullptr || output == nullptr) return false;
  std::int64_t own_block = 0;
  const auto& counts = spec_.counts;
  for (int i = 0; i < layout_.rank; ++i)
    own_block += counts.empty() ? spec_.count : counts[static_cast<std::size_t>(i)];
  const std::int64_t own_bytes = own_block * static_cast<std::int64_t>(size_of(wire_dtype_));
  if (layout_.input_in_blocks == layout_.output_in_blocks) return input == output;
  return layout_.output_in_blocks ? input == output + own_bytes : output == input + own_bytes;
}

void Collective::start_execution() {
  if (!is_laid_out_) lay_out_execution();
  const std::byte* input = stage_input();
  std::byte* output = stage_output(input);
  if (!is_laid_out_) spec_.in_place = works_in_place(input, output);
  is_laid_out_ = true;
  is_direct_ = staged_output_ == nullptr && input == request_.input.data() && !request_.sizes_follow;
  stage_ = Stage::execution;
  run(spec_, wire_dtype_, input, output, execution_phase);
  if (poll_part()) finish_execution();
}

}  // namespace tutti
