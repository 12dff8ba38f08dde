// soon.hpp: the time, roughly, in a fifth of the time that a look at the clock takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

#include <tutti/clock.hpp>

namespace tutti {

/// Not before clock.now(), and a tick of the system's clock (a few ms) later at most: for deadlines. The machine's clock is
/// not looked at: its last tick is known, and the next one has not come yet.
inline TimePoint soon(const Clock& clock) {
  if (&clock != &steady_clock()) return clock.now();
  const auto of = [](const timespec& time) { return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec); };
  static const Duration tick = [&] {
    timespec resolution{};
    clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
    return of(resolution);
  }();
  timespec last{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &last);
  return TimePoint(of(last) + tick);
}

}  // namespace tutti
