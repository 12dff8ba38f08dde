// clock.hpp: time as it is passed in, so that a whole cluster can live in virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tutti {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// The seam to time. Nothing below the public door reads a clock of its own.
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
