// cuda_backend.cpp: the backend for arrays on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_backend.hpp"

#include <cstdlib>
#include <string_view>

#include <tutti/error.hpp>

#include "backend/cuda_direct_call.hpp"
#include "backend/cuda_host_call.hpp"

namespace tutti {
namespace {

bool may_share() {
  static const bool wish = [] {
    const char* const text = std::getenv("TUTTI_CUDA_SHARING");  // NOLINT(concurrency-mt-unsafe): read once
    return text == nullptr || std::string_view(text) != "off";
  }();
  return wish;
}

const View& any_of(const Request& request) { return request.input.present() ? request.input : request.output; }

}  // namespace

CudaBackend::CudaBackend(Parts parts) : parts_(std::move(parts)) {}

CudaBackend::~CudaBackend() = default;

std::optional<std::string> CudaBackend::refuses(const Request& request) const {
  const View& any = any_of(request);
  if (!any.present() || any.device().kind != Device::Kind::cuda) return "it works on memory of GPUs";
  const cuda::FoundDriver& found = cuda::find_driver();
  if (found.driver == nullptr)
    return "the array is on a GPU, which this process cannot use: " + found.problem +
           "; copy it to the CPU's memory first";
  return std::nullopt;
}

std::unique_ptr<PreparedCall> CudaBackend::prepare(const Request& request) {
  cuda::Device& device = cuda::Device::get(device_of(request));
  const CudaHostCall::Parts host{
      .staging = {.facts = parts_.facts, .executor = parts_.executor.get(), .buffers = &buffers_},
      .device = &device,
      .pinned = &pinned_,
      .on_device = &on_device_,
      .running = &running_};
  if (parts_.is_one_host && CudaDirectCall::serves(request, *parts_.facts))
    return std::make_unique<CudaDirectCall>(
        CudaDirectCall::Parts{.host = host, .sharing = &sharing_, .may_share = may_share()}, request);
  return std::make_unique<CudaHostCall>(host, request);
}

}  // namespace tutti
