// simulated_time.hpp: a clock that only events move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::link {

// Starts well after the epoch, so that "a while ago" is a time, too.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  // Never backwards.
  void advance_to(TimePoint time) {
    if (time > now_) now_ = time;
  }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

// What happens when. Events of the same time happen in the order in which they were added: one seed, one history.
class EventQueue {
 public:
  explicit EventQueue(VirtualClock& clock) : clock_(&clock) {}

  void at(TimePoint time, std::function<void()> action) {
    queue_.push(Event{std::max(time, clock_->now()), number_++, std::move(action)});
  }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] TimePoint next_time() const { return queue_.empty() ? TimePoint::max() : queue_.top().time; }
  [[nodiscard]] TimePoint now() const { return clock_->now(); }

  // Moves the clock to the next event and lets it happen; false if there is none.
  bool run_next() {
    if (queue_.empty()) return false;
    const Event event = queue_.top();
    queue_.pop();
    clock_->advance_to(event.time);
    event.action();
    return true;
  }

 private:
  struct Event {
    TimePoint time;
    std::uint64_t number;
    std::function<void()> action;
    friend bool operator<(const Event& a, const Event& b) {  // the queue's top is the greatest: the earliest
      return std::pair(a.time, a.number) > std::pair(b.time, b.number);
    }
  };

  VirtualClock* clock_;
  std::uint64_t number_ = 0;
  std::priority_queue<Event> queue_;
};

}  // namespace tutti::link
