// cuda_host_call.cpp: a call on arrays of a GPU, by way of the host.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_host_call.hpp"

#include <atomic>

#include <tutti/error.hpp>

#include "backend/relocate.hpp"
#include "cuda/strided.hpp"

namespace tutti {
namespace {

/// Where the prepared call imagines its arrays; it is started with others. They lie far apart, as the real ones do.
std::byte* imagined(std::uintptr_t place) { return reinterpret_cast<std::byte*>(place); }  // NOLINT: never followed
constexpr std::uintptr_t input_place = std::uintptr_t{1} << 40, output_place = std::uintptr_t{1} << 46;

View on_host(const View& view, std::byte* memory) {
  return view.present() ? View(memory, view.dtype(), view.shape()) : View();
}

Request host_request(Request request) {
  request.input = on_host(request.input, imagined(input_place));
  request.output = on_host(request.output, imagined(output_place));
  return request;
}

std::size_t array_bytes(const View& view) { return static_cast<std::size_t>(view.bytes()); }

std::size_t array_bytes(DType dtype, std::span<const std::int64_t> shape) {
  std::size_t bytes = size_of(dtype);
  for (const std::int64_t length : shape) bytes *= static_cast<std::size_t>(length);
  return bytes;
}

View contiguous_like(const View& view, std::byte* memory) {
  return View(memory, view.dtype(), view.shape(), view.device());
}

void copy_bytes(void* to, const void* from, std::size_t bytes, cuda::Stream stream) {
  if (bytes == 0) return;
  cuda::check(
      cuda::driver().copy(reinterpret_cast<cuda::Address>(to), reinterpret_cast<cuda::Address>(from), bytes, stream),
      "cuMemcpyAsync");
}

}  // namespace

CudaHostCall::CudaHostCall(const Parts& parts, const Request& request)
    : parts_(parts), asked_(request), inner_(prepare_on(parts.staging, host_request(request))), work_(*parts.device) {
  asked_.allocate = nullptr;
  host_allocates_ = [this](DType dtype, std::span<const std::int64_t> shape, std::uint8_t kind) {
    learned_ = {.dtype = dtype, .shape = {shape.begin(), shape.end()}, .kind = kind, .is_known = true};
    const cuda::Device::Current current(*parts_.device);
    host_output_ = parts_.pinned->take(*parts_.device, std::max<std::size_t>(array_bytes(dtype, shape), 1));
    return View(host_output_.memory, dtype, shape);
  };
}

bool CudaHostCall::start(const Buffers& buffers, const Signature& signature) {
  arrays_ = buffers;
  signature_ = signature;
  caller_allocates_ = buffers.allocate != nullptr ? *buffers.allocate : Allocate();
  learned_ = {};
  ++*parts_.running;
  stage_ = Stage::fetching;
  const cuda::Device::Current current(*parts_.device);
  work_.begin(buffers.input, buffers.output);
  fetch();
  return poll();
}

// With the context current.
void CudaHostCall::fetch() {
  cuda::Device& device = *parts_.device;
  if (asked_.output.present())
    host_output_ = parts_.pinned->take(device, std::max<std::size_t>(array_bytes(asked_.output), 1));
  if (!asked_.input.present()) return;
  const View input = relocate(asked_.input, arrays_.input);
  const std::byte* from = arrays_.input;
  host_input_ = parts_.pinned->take(device, std::max<std::size_t>(array_bytes(input), 1));
  if (!input.is_contiguous() && input.count() > 0) {
    packed_input_ = parts_.on_device->take(device, array_bytes(input));
    cuda::copy_view(device, work_.stream(), contiguous_like(input, packed_input_.memory), input);
    from = packed_input_.memory;
  }
  copy_bytes(host_input_.memory, from, array_bytes(input), work_.stream());
  work_.mark();
}

bool CudaHostCall::poll() {
  if (stage_ == Stage::idle) return true;
  const cuda::Device::Current current(*parts_.device);
  if (stage_ == Stage::fetching) {
    if (!work_.is_over()) return false;
    if (!start_collective()) return false;
    deliver();
  } else if (stage_ == Stage::collective) {
    if (!inner_->poll()) return false;
    deliver();
  }
  if (!work_.is_over()) return false;
  release();
  return true;
}

bool CudaHostCall::start_collective() {
  stage_ = Stage::collective;
  const bool learns = !asked_.output.present() && caller_allocates_;
  const Buffers buffers{
      .input = host_input_.memory, .output = host_output_.memory, .allocate = learns ? &host_allocates_ : nullptr};
  if (!inner_->start(buffers, signature_)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  inner_->wake_peers();
  return true;
}

// With the context current.
void CudaHostCall::deliver() {
  stage_ = Stage::delivering;
  View output = asked_.output.present() ? relocate(asked_.output, arrays_.output) : View();
  if (!output.present() && learned_.is_known) output = caller_allocates_(learned_.dtype, learned_.shape, learned_.kind);
  if (!output.present() || output.count() == 0) return;
  cuda::Device& device = *parts_.device;
  auto* to = static_cast<std::byte*>(output.data());
  if (!output.is_contiguous()) {
    packed_output_ = parts_.on_device->take(device, array_bytes(output));
    to = packed_output_.memory;
  }
  copy_bytes(to, host_output_.memory, array_bytes(output), work_.stream());
  if (!output.is_contiguous()) cuda::copy_view(device, work_.stream(), output, contiguous_like(output, to));
  work_.mark();
}

void CudaHostCall::release() {
  work_.end();
  for (cuda::Block* block : {&host_input_, &host_output_}) parts_.pinned->give_back(*block);
  for (cuda::Block* block : {&packed_input_, &packed_output_}) parts_.on_device->give_back(*block);
  caller_allocates_ = nullptr;
  if (stage_ != Stage::idle) --*parts_.running;
  stage_ = Stage::idle;
}

void CudaHostCall::cancel() {
  if (stage_ == Stage::idle) return;
  if (stage_ == Stage::collective) inner_->cancel();
  work_.abandon();
  release();
}

Progress CudaHostCall::progress() const {
  switch (stage_) {
    case Stage::idle: return {};
    case Stage::fetching: return {.how = "the host", .step = 0, .step_count = 3};
    case Stage::delivering: return {.how = "the host", .stage = 2, .step = 2, .step_count = 3};
    case Stage::collective: break;
  }
  Progress progress = inner_->progress();
  progress.how = "the host, " + progress.how;
  return progress;
}

}  // namespace tutti
