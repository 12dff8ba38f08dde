// fuse_test.cpp: which arrays of a tree travel together.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/fuse.hpp"

#include <gtest/gtest.h>

namespace tutti::parallel {
namespace {

using Plan = std::vector<std::vector<int>>;

TEST(Fuse, ArraysOfOneDtypeTravelTogetherWhateverLiesBetweenThem) {
  const std::vector<BucketItem> items{{8, DType::float32}, {8, DType::int64}, {4, DType::float32}, {16, DType::int64}};
  EXPECT_EQ(plan_fused(items), (Plan{{0, 2}, {1, 3}}));
}

TEST(Fuse, ALargeArrayGoesByItselfAndDoesNotPartTheOthers) {
  const std::vector<BucketItem> items{{8, DType::float32}, {101, DType::float32}, {100, DType::float32}};
  EXPECT_EQ(plan_fused(items, {.array_bytes = 100}), (Plan{{0, 2}, {1}}));
}

TEST(Fuse, AMessageThatIsFullIsFollowedByAnother) {
  const std::vector<BucketItem> items(5, {40, DType::float32});
  EXPECT_EQ(plan_fused(items, {.array_bytes = 50, .message_bytes = 80}), (Plan{{0, 1}, {2, 3}, {4}}));
}

TEST(Fuse, ArraysWithoutElementsTravel) {
  const std::vector<BucketItem> items(2, {0, DType::float64});
  EXPECT_EQ(plan_fused(items), (Plan{{0, 1}}));
  EXPECT_TRUE(plan_fused({}).empty());
}

}  // namespace
}  // namespace tutti::parallel
