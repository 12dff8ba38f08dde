// staged_call.cpp: any request on an executor: the exchange of sizes if need be, then packing, the collective, and unpacking.
// SPDX-License-Identifier: Apache-2.0
#include "backend/staged_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include <tutti/error.hpp>

#include "backend/lowering.hpp"
#include "backend/relocate.hpp"

namespace tutti {

namespace {

bool exchanges_sizes(const StagingParts& parts, const Request& request) {
  return request.sizes_follow || (!request.recv_sizes.empty() && !parts.executor->compares_counts());
}

}  // namespace

std::unique_ptr<PreparedCall> prepare_on(const StagingParts& parts, const Request& request) {
  if (exchanges_sizes(parts, request)) return std::make_unique<StagedCall>(parts, request);
  BlockLayout layout;
  lay_out(request, parts.facts->rank, parts.facts->size, layout);
  if (layout.has_output && !request.output.present()) return std::make_unique<StagedCall>(parts, request);
  ExecutionSpec what;
  const DType dtype = request.input.present() ? request.input.dtype() : request.output.dtype();
  what.dtype = dtype_on_the_wire(request, dtype, *parts.executor);
  const Staging::Job job{.request = &request, .layout = &layout, .wire = what.dtype};
  if (!Staging::is_input_direct(job) || !Staging::is_output_direct(job))
    return std::make_unique<StagedCall>(parts, request);
  lower(request, layout, *parts.facts, what);
  what.spec.in_place = is_in_place(what, layout,
                                   {.input = static_cast<const std::byte*>(request.input.data()),
                                    .output = static_cast<std::byte*>(request.output.data())});
  return parts.executor->prepare(what);
}

StagedCall::StagedCall(const StagingParts& parts, const Request& request)
    : parts_(parts), asked_(request), request_(request), staging_(*parts.buffers) {
  asked_.allocate = request_.allocate = nullptr;  // comes with each start
  if (exchanges_sizes(parts, request)) sizes_.emplace(*parts.facts, *parts.executor, request);
}

bool StagedCall::start(const Buffers& buffers, const Signature& signature) {
  if (sizes_) request_ = asked_;  // what was learned last time does not hold any more
  request_.input = asked_.input.present() ? relocate(asked_.input, buffers.input) : View();
  request_.output = asked_.output.present() ? relocate(asked_.output, buffers.output) : View();
  request_.allocate = buffers.allocate != nullptr ? *buffers.allocate : Allocate();
  signature_ = signature;
  if (!sizes_) return start_data();
  stage_ = Stage::sizes;
  if (!sizes_->start(request_, signature)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  sizes_->call().wake_peers();
  sizes_->take_sizes(request_);
  return start_data();
}

bool StagedCall::start_data() {
  if (data_ == nullptr || sizes_ || !asked_.output.present()) lay_out_data();
  const std::byte* const input = staging_.take_input(job());
  std::byte* const output = staging_.place_output(job(), input);
  stage_ = Stage::data;
  what_.spec.in_place = is_in_place(what_, layout_, {.input = input, .output = output});
  if (data_ == nullptr || prepared_for_.spec != what_.spec || prepared_for_.dtype != what_.dtype) {
    prepared_for_ = what_;
    data_ = parts_.executor->prepare(what_);
  }
  return data_->start({.input = input, .output = output}, signature_) && finish();
}

void StagedCall::lay_out_data() {
  lay_out(request_, parts_.facts->rank, parts_.facts->size, layout_);
  const DType dtype = request_.input.present() ? request_.input.dtype() : request_.output.dtype();
  if (layout_.has_output && !request_.output.present() && request_.allocate) {
    request_.output = request_.allocate(dtype, layout_.output_shape, request_.kind);
  }
  // When the request was checked, the sizes were not known yet.
  if (sizes_ && layout_.has_output && !std::ranges::equal(request_.output.shape(), layout_.output_shape)) {
    throw InvalidArgument(fmt::format("the result has shape [{}] but the array for it has shape [{}]",
                                      fmt::join(layout_.output_shape, ", "), fmt::join(request_.output.shape(), ", ")));
  }
  what_.dtype = dtype_on_the_wire(request_, dtype, *parts_.executor);
  lower(request_, layout_, *parts_.facts, what_);
}

bool StagedCall::poll() {
  if (stage_ == Stage::sizes) {
    if (!sizes_->call().poll()) return false;
    sizes_->take_sizes(request_);
    if (!start_data()) return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    data_->wake_peers();
    return true;
  }
  return stage_ != Stage::data || (data_->poll() && finish());
}

bool StagedCall::finish() {
  staging_.deliver(job());
  staging_.give_back();
  request_.allocate = nullptr;  // lets go of what the caller's function holds
  stage_ = Stage::idle;
  return true;
}

void StagedCall::wake_peers() { data_->wake_peers(); }

void StagedCall::cancel() {
  if (stage_ == Stage::sizes) sizes_->call().cancel();
  if (stage_ == Stage::data && data_) data_->cancel();
  staging_.give_back();
  request_.allocate = nullptr;
  stage_ = Stage::idle;
}

Progress StagedCall::progress() const {
  if (stage_ == Stage::idle) return {.how = data_ == nullptr ? std::string() : data_->progress().how};
  Progress progress = stage_ == Stage::sizes ? sizes_->call().progress() : data_->progress();
  progress.stage = stage_ == Stage::sizes ? 0 : 1;
  if (stage_ == Stage::sizes) progress.how = fmt::format("size exchange over {}", parts_.executor->medium());
  return progress;
}

}  // namespace tutti
