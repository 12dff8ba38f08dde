// soon_test.cpp: the time, roughly, is the clock's own.
// SPDX-License-Identifier: Apache-2.0
#include "base/soon.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using namespace std::chrono_literals;

TEST(Soon, it_is_about_the_time_of_the_steady_clock) {
  const TimePoint before = steady_clock().now();
  const TimePoint told = soon(steady_clock());
  EXPECT_GT(told, before - 1s);
  EXPECT_LT(told, steady_clock().now() + 1s);
}

TEST(Soon, of_another_clock_it_is_the_time) {
  struct : Clock {
    [[nodiscard]] TimePoint now() const override { return TimePoint(5h); }
  } const stopped;
  EXPECT_EQ(soon(stopped), TimePoint(5h));
}

}  // namespace
}  // namespace tutti
