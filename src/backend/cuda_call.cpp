// cuda_call.cpp: what the calls on arrays of a GPU have in common.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_call.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "cuda/ready.hpp"

namespace tutti {

int device_of(const Request& request) {
  const View &in = request.input, &out = request.output;
  if (in.present() && out.present() && !(in.device() == out.device())) {
    const auto words = [](const View& view) {
      return view.device().kind == Device::Kind::cuda ? fmt::format("GPU {}", view.device().index)
                                                      : std::string("the CPU's memory");
    };
    throw InvalidArgument(fmt::format(
        "the input lies on {}, the array for the result on {}; pass two on the same device", words(in), words(out)));
  }
  return (in.present() ? in : out).device().index;
}

void GpuWork::begin(const void* input, const void* output) {
  stream_ = device_.take_stream();
  event_ = device_.take_event();
  is_marked_ = false;
  cuda::wait_until_ready(device_, input, stream_);
  if (output != input) cuda::wait_until_ready(device_, output, stream_);
  mark();
}

void GpuWork::mark() {
  cuda::check(cuda::driver().record(event_, stream_), "cuEventRecord");
  is_marked_ = true;
}

void GpuWork::end() {
  if (stream_ == nullptr) return;
  device_.give_back_stream(stream_);
  device_.give_back(event_);
  stream_ = nullptr;
  event_ = nullptr;
  is_marked_ = false;
}

void GpuWork::abandon() {
  if (stream_ == nullptr) return;
  const cuda::Device::Current current(device_);
  if (is_marked_) {
    static_cast<void>(cuda::driver().record(event_, stream_));
    static_cast<void>(cuda::driver().synchronize(event_));
  }
  end();
}

}  // namespace tutti
