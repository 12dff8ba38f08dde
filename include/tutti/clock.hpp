// clock.hpp: the clock as an interface, so that tests can run a whole cluster in virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tutti {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A timeout as people give it: any std::chrono duration, also in parts of seconds (0.5s). What is too long to count in nanoseconds is the longest
/// that is not.
class TimeLimit {
 public:
  constexpr TimeLimit() = default;
  template <class R, class P>
  constexpr TimeLimit(const std::chrono::duration<R, P>& limit) {  // NOLINT: implicit on purpose
    using Seconds = std::chrono::duration<double>;
    const double seconds = std::chrono::duration_cast<Seconds>(limit).count();
    constexpr double longest = 9.2e9;  // seconds: 292 years
    limit_ = seconds >= longest    ? Duration::max()
             : seconds <= -longest ? Duration::min()
                                   : std::chrono::duration_cast<Duration>(limit);
  }
  constexpr operator Duration() const { return limit_; }  // NOLINT: implicit on purpose

 private:
  Duration limit_{};
};

/// The library reads time through this interface only; nothing below the public API reads a clock of its own.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
};

/// The machine's monotonic clock.
const Clock& steady_clock();

/// The deadline `timeout` from `now`; a timeout too long to represent saturates.
constexpr TimePoint deadline_after(TimePoint now, Duration timeout) {
  return timeout > TimePoint::max() - now ? TimePoint::max() : now + timeout;
}

}  // namespace tutti
