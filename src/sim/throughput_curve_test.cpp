// throughput_curve_test.cpp: bytes at a measured throughput, and paces as people type them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/throughput_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

namespace tutti::sim {
namespace {

constexpr double tiny = 1e-15;

TEST(ThroughputCurve, ANumberCountsForEverySize) {
  const ThroughputCurve throughput = parse_throughput("--inside-bandwidth", "4");
  EXPECT_NEAR(throughput.seconds(1000, 0), 250e-9, tiny);
  EXPECT_NEAR(throughput.seconds(1000, 1 << 30), 250e-9, tiny);
  EXPECT_EQ(throughput.seconds(0, 0), 0);
}

TEST(ThroughputCurve, BetweenMeasuredSizesTheTimeIsInProportion) {
  const ThroughputCurve throughput = parse_throughput("--inside-bandwidth", "1K:8,4K:4");
  EXPECT_NEAR(throughput.seconds(512, 0), 512 / 8e9, tiny);
  EXPECT_NEAR(throughput.seconds(1024, 0), 1024 / 8e9, tiny);
  EXPECT_NEAR(throughput.seconds(2560, 0), (1024 / 8e9 + 4096 / 4e9) / 2, tiny);
  EXPECT_NEAR(throughput.seconds(4096, 0), 4096 / 4e9, tiny);
  EXPECT_NEAR(throughput.seconds(1 << 20, 0), (1 << 20) / 4e9, tiny);
  EXPECT_NEAR(throughput.seconds_per_byte(), 1 / 4e9, tiny);
}

TEST(ThroughputCurve, AReuseDistanceBeyondTheCacheGivesTheThroughputOfMemory) {
  const ThroughputCurve throughput = parse_throughput("--reduce-bandwidth", "1K:8,4K:4");
  EXPECT_NEAR(throughput.seconds(1024, 2048), 1024 / 8e9, tiny);  // as when measured: a piece, and another one
  EXPECT_NEAR(throughput.seconds(1024, 8192), 1024 / 4e9, tiny);
}

TEST(ThroughputCurve, WhatMakesNoSenseIsRefusedByName) {
  for (const char* text : {"", "0", "-1", "fast", "1K:", "1K:0", "1Q:4", "4K:5,1K:6", "0:5", "1K:5,", "1K:5,7"}) {
    try {
      parse_throughput("--copy-bandwidth", text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("--copy-bandwidth")) << text;
    }
  }
}

}  // namespace
}  // namespace tutti::sim
