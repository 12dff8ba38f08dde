// clock.cpp: the machine's monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/clock.hpp>

namespace tutti {
namespace {

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
};

}  // namespace

const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace tutti
