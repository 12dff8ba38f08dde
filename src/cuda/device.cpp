// device.cpp: one GPU as this process uses it.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include <tutti/error.hpp>

#include "cuda/kernels.hpp"

namespace tutti::cuda {

Device& Device::get(int index) {
  constexpr int devices_max = 64;
  static std::mutex mutex;
  static std::array<Device*, devices_max> devices{};
  static_cast<void>(driver());
  const int count = find_driver().device_count;
  if (index < 0 || index >= std::min(count, devices_max)) {
    throw Unsupported(
        fmt::format("the array is on GPU {}, but this process sees {} GPU{}", index, count, count == 1 ? "" : "s"));
  }
  const std::lock_guard guard(mutex);
  Device*& device = devices[static_cast<std::size_t>(index)];
  if (device == nullptr) device = std::unique_ptr<Device>(new Device(index)).release();
  return *device;
}

Device::Device(int index) : index_(index) {
  const Driver& d = driver();
  DeviceNumber number = 0;
  check(d.device_get(&number, index), "cuDeviceGet");
  check(d.device_uuid(&uuid_, number), "cuDeviceGetUuid");
  check(d.device_attribute(&multiprocessors_, attribute_multiprocessors, number), "cuDeviceGetAttribute");
  check(d.retain_context(&context_, number), "cuDevicePrimaryCtxRetain");
}

Device::Current::Current(const Device& device) { check(driver().push_context(device.context_), "cuCtxPushCurrent"); }

Device::Current::~Current() {
  Context popped = nullptr;
  static_cast<void>(driver().pop_context(&popped));
}

Event Device::take_event() {
  const std::lock_guard guard(mutex_);
  if (!events_.empty()) {
    Event const event = events_.back();
    events_.pop_back();
    return event;
  }
  Event event = nullptr;
  check(driver().create_event(&event, event_disable_timing), "cuEventCreate");
  return event;
}

void Device::give_back(Event event) {
  const std::lock_guard guard(mutex_);
  events_.push_back(event);
}

Stream Device::take_stream() {
  const std::lock_guard guard(mutex_);
  if (!streams_.empty()) {
    Stream const stream = streams_.back();
    streams_.pop_back();
    return stream;
  }
  Stream stream = nullptr;
  check(driver().create_stream(&stream, stream_non_blocking), "cuStreamCreate");
  return stream;
}

void Device::give_back_stream(Stream stream) {
  const std::lock_guard guard(mutex_);
  streams_.push_back(stream);
}

bool Device::has_kernels() {
  const std::lock_guard guard(mutex_);
  if (!is_module_asked_) {
    is_module_asked_ = true;
    const void* const image = kernel_image();
    if (image == nullptr) {
      kernel_problem_ = "this build has no CUDA kernels: no nvcc was found when it was built";
    } else if (const Result result = driver().load_module(&module_, image); result != success) {
      module_ = nullptr;
      kernel_problem_ = fmt::format("the kernels cannot be loaded: {}", describe(driver(), result));
    }
  }
  return module_ != nullptr;
}

Function Device::kernel(std::string_view name) {
  if (!has_kernels()) return nullptr;
  const std::lock_guard guard(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  std::string text(name);
  Function function = nullptr;
  check(driver().get_function(&function, module_, text.c_str()), name);
  kernels_.emplace(std::move(text), function);
  return function;
}

bool has_happened(Event event) {
  const Result result = driver().query(event);
  if (result == not_ready) return false;
  check(result, "work on the GPU failed");
  return true;
}

}  // namespace tutti::cuda
