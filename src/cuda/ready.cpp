// ready.cpp: what has to happen on the GPU before the arrays of a call may be read and written.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/ready.hpp"

#include <mutex>
#include <unordered_map>

#include <tutti/error.hpp>

namespace tutti::cuda {
namespace {

/// By address: the event to wait for; null: there was nothing to wait for.
struct Notes {
  std::mutex mutex;
  std::unordered_map<const void*, Event> events;
};

Notes& notes() {
  static auto* const all = new Notes;  // calls may end while static objects are being destroyed
  return *all;
}

constexpr std::size_t notes_max =
    4096;  // of calls that were rejected before they began: their notes are of no use to anyone

}  // namespace

void note_stream(Device& device, const void* array, Stream stream) {
  const Driver& d = driver();
  const Device::Current current(device);
  int capture = 0;
  check(d.is_capturing(stream, &capture), "cuStreamIsCapturing");
  if (capture != 0) {
    throw Unsupported(
        "the stream is being captured into a CUDA graph, and a call between processes cannot be part of one: its "
        "processes meet anew in every call; make it outside the capture");
  }
  Event event = nullptr;
  if (d.stream_query(stream) != success) {
    event = device.take_event();
    check(d.record(event, stream), "cuEventRecord");
  }
  const std::lock_guard guard(notes().mutex);
  auto& events = notes().events;
  if (events.size() >= notes_max) {
    for (const auto& [address, old] : events) {
      if (old != nullptr) device.give_back(old);
    }
    events.clear();
  }
  Event& noted = events[array];
  if (noted != nullptr) device.give_back(noted);
  noted = event;
}

void wait_until_ready(Device& device, const void* array, Stream stream) {
  if (array == nullptr) return;
  Event event = nullptr;
  {
    const std::lock_guard guard(notes().mutex);
    auto& events = notes().events;
    if (const auto found = events.find(array); found != events.end()) {
      event = found->second;
      events.erase(found);
      if (event == nullptr) return;
    }
  }
  if (event == nullptr) {
    event = device.take_event();
    check(driver().record(event, nullptr), "cuEventRecord");
  }
  check(driver().stream_wait(stream, event, 0), "cuStreamWaitEvent");
  device.give_back(event);  // a wait is for what was recorded before it
}

}  // namespace tutti::cuda
