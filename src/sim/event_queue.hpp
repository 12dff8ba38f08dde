// event_queue.hpp: what happens next: a heap with four children per node, which is flatter than the usual one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tutti::sim {

enum class Happening : std::uint8_t {
  action_ended,  // the rank's core is done with its job
  at_core,       // bytes for `rank` come to the network's core
  at_card,       // … to the network card of its host
  arrived,       // … to the rank itself: the first of them
  announced,     // a long message waits at its sender
  cts_received,  // … and may be sent: `task` is the sender's
  landed,        // the last bytes are there, and taken
  core_steals,   // the core that the rank had is idle, and looks for a rank that waits for another one
};

struct Event {
  double time = 0;
  std::uint32_t order = 0;  // of two at the same time, the one that came up first
  std::uint32_t rank = 0;
  std::uint32_t task = 0;
  std::uint32_t depth : 28 = 0;  // messages that came one after the other, up to this one
  std::uint32_t happening : 4 = 0;
  [[nodiscard]] Happening what() const { return static_cast<Happening>(happening); }
};
static_assert(sizeof(Event) == 24);

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  void push(double time, Happening what, std::uint32_t rank, std::uint32_t task, std::uint32_t depth = 0) {
    Event event{.time = time, .order = order_++, .rank = rank, .task = task};
    event.depth = depth & 0xfffffffu;
    event.happening = static_cast<std::uint32_t>(what) & 0xfu;
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0 && earlier(event, heap_[(at - 1) / 4])) {
      heap_[at] = heap_[(at - 1) / 4];
      at = (at - 1) / 4;
    }
    heap_[at] = event;
  }

  Event pop() {
    const Event first = heap_.front(), last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return first;
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 4 * at + 1) {
      std::size_t least = child;
      for (std::size_t i = child + 1; i < child + 4 && i < size; ++i) {
        if (earlier(heap_[i], heap_[least])) least = i;
      }
      if (!earlier(heap_[least], last)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
    return first;
  }

 private:
  static bool earlier(const Event& a, const Event& b) {
    return a.time < b.time || (a.time == b.time && a.order < b.order);
  }
  std::vector<Event> heap_;
  std::uint32_t order_ = 0;
};

}  // namespace tutti::sim
