// fake_cuda.cpp: the driver of a GPU that is not there.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "fake_gpu.hpp"

namespace {

using Task = std::function<void()>;

class Stream {
 public:
  Stream() : thread_([this] { run(); }) { thread_.detach(); }
  void add(Task task) {
    const std::lock_guard guard(mutex_);
    tasks_.push_back(std::move(task));
    ++added_;
    changed_.notify_all();
  }
  bool is_idle() {
    const std::lock_guard guard(mutex_);
    return done_ == added_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
      ++done_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::uint64_t added_ = 0, done_ = 0;
  std::thread thread_;
};

Stream& stream_of(void* stream) {
  static auto* const standard = new Stream;
  return stream == nullptr ? *standard : *static_cast<Stream*>(stream);
}

/// What was recorded last counts: it may be recorded again, on another stream, before it has happened.
struct Event {
  using Happened = std::shared_ptr<std::atomic<bool>>;
  Happened latest = std::make_shared<std::atomic<bool>>(true);
};

void wait_for(const Event::Happened& happened) {
  while (!*happened) std::this_thread::yield();
}

constexpr int ok = 0, no_image = 209, not_supported = 801, not_ready = 600;
constexpr int attribute_device_pointer = 3, attribute_device_ordinal = 9;

}  // namespace

namespace tutti::fake {

void enqueue(void* stream, std::function<void()> task) { stream_of(stream).add(std::move(task)); }

}  // namespace tutti::fake

FAKE int cuInit(unsigned) { return ok; }
FAKE int cuDriverGetVersion(int* version) { return *version = 13000, ok; }
FAKE int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_FAKE", ok; }
FAKE int cuGetErrorString(int, const char** text) { return *text = "there is no such GPU", ok; }
FAKE int cuDeviceGetCount(int* count) { return *count = 1, ok; }
FAKE int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ok; }
FAKE int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "no GPU", static_cast<std::size_t>(length));
  return ok;
}
FAKE int cuDeviceGetUuid(void* uuid, int) {
  const char* const same = std::getenv("TUTTI_TEST_GPU");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const std::string text = same != nullptr ? same : std::to_string(getpid());
  std::memset(uuid, 0, 16);
  std::memcpy(uuid, text.data(), std::min<std::size_t>(text.size(), 16));
  return ok;
}
FAKE int cuDeviceGetAttribute(int* value, int, int) { return *value = 1, ok; }
FAKE int cuDevicePrimaryCtxRetain(void** context, int) { return *context = nullptr, ok; }
FAKE int cuCtxPushCurrent_v2(void*) { return ok; }
FAKE int cuCtxPopCurrent_v2(void** context) { return *context = nullptr, ok; }
FAKE int cuMemAlloc_v2(void** memory, std::size_t bytes) { return *memory = std::malloc(bytes), ok; }
FAKE int cuMemFree_v2(void* memory) { return std::free(memory), ok; }
FAKE int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) { return *memory = std::malloc(bytes), ok; }
FAKE int cuMemFreeHost(void* memory) { return std::free(memory), ok; }
FAKE int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, void* stream) {
  return stream_of(stream).add([=] { std::memmove(to, from, bytes); }), ok;
}
FAKE int cuMemsetD8Async(void* to, unsigned char value, std::size_t bytes, void* stream) {
  return stream_of(stream).add([=] { std::memset(to, value, bytes); }), ok;
}
FAKE int cuPointerGetAttribute(void* value, int attribute, void* pointer) {
  if (attribute == attribute_device_pointer) return *static_cast<void**>(value) = pointer, ok;
  if (attribute == attribute_device_ordinal) return *static_cast<int*>(value) = 0, ok;
  return not_supported;
}
FAKE int cuStreamCreate(void** stream, unsigned) { return *stream = new Stream, ok; }
FAKE int cuStreamIsCapturing(void*, int* status) { return *status = 0, ok; }
FAKE int cuStreamQuery(void* stream) { return stream_of(stream).is_idle() ? ok : not_ready; }
FAKE int cuStreamWaitEvent(void* stream, void* handle, unsigned) {
  const auto* const event = static_cast<Event*>(handle);
  return stream_of(stream).add([happened = event->latest] { wait_for(happened); }), ok;
}
FAKE int cuEventCreate(void** event, unsigned) { return *event = new Event, ok; }
FAKE int cuEventDestroy_v2(void*) { return ok; }
FAKE int cuEventRecord(void* handle, void* stream) {
  auto* const event = static_cast<Event*>(handle);
  event->latest = std::make_shared<std::atomic<bool>>(false);
  return stream_of(stream).add([happened = event->latest] { *happened = true; }), ok;
}
FAKE int cuEventQuery(void* handle) { return *static_cast<const Event*>(handle)->latest ? ok : not_ready; }
FAKE int cuEventSynchronize(void* handle) { return wait_for(static_cast<const Event*>(handle)->latest), ok; }
FAKE int cuIpcGetMemHandle(void*, void*) { return not_supported; }
FAKE int cuIpcOpenMemHandle_v2(void**, std::array<char, 64>, unsigned) { return not_supported; }
FAKE int cuIpcCloseMemHandle(void*) { return not_supported; }
FAKE int cuModuleLoadData(void**, const void*) { return no_image; }
FAKE int cuModuleGetFunction(void**, void*, const char*) { return no_image; }
FAKE int cuLaunchKernel() { return not_supported; }
