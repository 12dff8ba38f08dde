// clock_fit.hpp: one time for all: ticks of a processor as nanoseconds, and the clocks of hosts against each other.
// SPDX-License-Identifier: Apache-2.0
//
// Hosts' clocks differ by milliseconds, calls take microseconds. But nobody leaves a call that gives every rank something of every other
// one before all have entered it. So each such call bounds the difference of two clocks from both sides, and the tightest bounds of
// many calls fix it to about the time of the fastest call. No message is needed, and old records can be aligned as well.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tutti::record {

struct ClockReading {
  std::uint64_t ticks = 0;
  std::int64_t real_ns = 0;
};

/// A straight line through two readings.
class TickClock {
 public:
  TickClock(ClockReading begin, ClockReading end);
  [[nodiscard]] std::int64_t at_ns(std::uint64_t ticks) const;
  [[nodiscard]] std::int64_t span_ns(std::uint64_t ticks) const;
  [[nodiscard]] std::int64_t begin_ns() const { return begin_.real_ns; }
  [[nodiscard]] std::int64_t end_ns() const { return end_.real_ns; }

 private:
  ClockReading begin_, end_;
  double ns_per_tick_ = 1;
};

/// When a rank was in a call that synchronises.
struct Stay {
  std::uint64_t group = 0, sequence = 0;
  std::int64_t entered_ns = 0, left_ns = 0;
};

struct Offset {
  std::int64_t ns = 0;      // to be added to the other clock's times
  std::int64_t within = 0;  // the true one differs by so much at most; −1: they share no call, and nothing is known
};
/// Of another clock against the first one's. Both in any order.
Offset offset_between(std::span<const Stay> first, std::span<const Stay> other);

}  // namespace tutti::record
