// clock_fit_test.cpp: ticks become times, and clocks are aligned by calls that both took part in.
// SPDX-License-Identifier: Apache-2.0
#include "record/clock_fit.hpp"

#include <gtest/gtest.h>

namespace tutti::record {
namespace {

TEST(TickClock, GivesTheTimesItWasMadeOfAndThoseBetween) {
  const TickClock clock({.ticks = 1000, .real_ns = 5000}, {.ticks = 4000, .real_ns = 6000});
  EXPECT_EQ(clock.at_ns(4000), 6000);
  EXPECT_EQ(clock.at_ns(1000), 5000);
  EXPECT_EQ(clock.at_ns(2500), 5500);
  EXPECT_EQ(clock.at_ns(7000), 7000);
  EXPECT_EQ(clock.span_ns(300), 100);
}

TEST(TickClock, DoesNotDivideByNothing) {
  const TickClock clock({.ticks = 1000, .real_ns = 5000}, {.ticks = 1000, .real_ns = 5000});
  EXPECT_EQ(clock.at_ns(1002), 5002);
}

TEST(OffsetBetween, FindsAnOffsetToWithinTheFastestCall) {
  constexpr std::int64_t off = -3'000'000;  // what has to be added to the other clock
  std::vector<Stay> first, other;
  for (std::int64_t call = 0; call < 50; ++call) {
    const std::int64_t begin = 1'000'000 * call, late = call % 7 * 10'000, took = 20'000 + call % 5 * 1000;
    const auto sequence = static_cast<std::uint64_t>(call);
    // Now one, now the other is late, and nobody leaves before both are there.
    const std::int64_t mine = call % 2 == 0 ? begin : begin + late, theirs = call % 2 == 0 ? begin + late : begin;
    const std::int64_t left = begin + late + took;
    first.push_back({.group = 1, .sequence = sequence, .entered_ns = mine, .left_ns = left});
    other.push_back({.group = 1, .sequence = sequence, .entered_ns = theirs - off, .left_ns = left - off});
  }
  const Offset found = offset_between(first, other);
  EXPECT_LE(std::abs(found.ns - off), found.within);
  EXPECT_LE(found.within, 20'000);
}

TEST(OffsetBetween, SaysThatNothingIsKnownWithoutACallInCommon) {
  const std::vector<Stay> first = {{.group = 1, .sequence = 0, .entered_ns = 1, .left_ns = 2}},
                          other = {{.group = 2, .sequence = 0, .entered_ns = 1, .left_ns = 2}};
  EXPECT_EQ(offset_between(first, other).within, -1);
}

}  // namespace
}  // namespace tutti::record
