// clock.hpp: the clock as an interface, so that tests can run a whole cluster in virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tutti {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

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
