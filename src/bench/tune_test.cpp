// tune_test.cpp: what `tutti tune` asks, and what it makes of the answers.
// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace tutti::bench {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

TEST(Tune, AsksAboutLimitsThatExistWithWorkThatMayDiffer) {
  for (const int ranks : {2, 3, 8}) {
    for (const Question& question : questions_about_shared_memory(ranks, ranks > 2)) {
      ASSERT_NE(std::ranges::find(shared_limits, question.limit, &SharedLimit::name), shared_limits.end());
      const SharedLimit& limit = *std::ranges::find(shared_limits, question.limit, &SharedLimit::name);
      EXPECT_FALSE(question.bench_cases.empty()) << question.limit;
      for (const std::int64_t value : question.values) {
        EXPECT_GE(value, limit.least) << question.limit;
        EXPECT_LE(value, limit.most) << question.limit;
        SharedLimits limits;
        limit_of(limits, question.limit) = value;
        EXPECT_EQ(table_from_text(to_text({.shared = limits})).shared, limits);
      }
    }
  }
}

TEST(Tune, SpeedsAreThoseOfTheMeanCellAndNoiseIsHowTheCopiesDiffer) {
  const Standing standing = standing_of({{2, 8}, {2, 9}, {1, 8}, {2, 2}});
  EXPECT_THAT(standing.speeds, ElementsAre(DoubleEq(1), testing::DoubleNear(1.414, 1e-3), DoubleEq(2)));
  EXPECT_NEAR(standing.noise, 1.0607, 1e-4);
  EXPECT_NEAR(standing_of({{2, 9}, {2, 8}}).noise, 1.0607, 1e-4);
}

TEST(Tune, WhatHoldsStaysUnlessAnotherIsFasterThanChanceMakesIt) {
  EXPECT_EQ(winner_of({.speeds = {1, 0.9, 1.03}}, 1.04), 0u);
  EXPECT_EQ(winner_of({.speeds = {1, 1.05, 1.2}}, 1.04), 2u);
  EXPECT_EQ(winner_of({.speeds = {1, 1.05, 1.2}, .noise = 1.2}, 1.04), 0u);
  EXPECT_EQ(winner_of({.speeds = {1}}, 1.04), 0u);
}

TEST(Tune, RowsCoverAllSizesOnceAndJoinWhatIsAlike) {
  const Choice doubling{.algorithm = Algorithm::recursive_doubling},
      ring{.algorithm = Algorithm::ring, .segment_bytes = 64};
  const auto rows = rows_of(Verb::all_reduce, 4, {doubling, doubling, doubling, ring, ring});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].bytes_min, 0);
  EXPECT_EQ(rows[0].bytes_max, 64 << 10);  // between 16 and 256 KiB
  EXPECT_EQ(rows[1].bytes_min, rows[0].bytes_max + 1);
  EXPECT_EQ(rows[1].bytes_max, INT64_MAX);
  EXPECT_EQ(rows[1].choice, ring);
  EXPECT_EQ(rows[1].ranks_min, 4);
  EXPECT_EQ(rows[1].ranks_max, 4);
}

}  // namespace
}  // namespace tutti::bench
