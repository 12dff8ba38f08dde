// buckets_test.cpp: small ones travel together, and all ranks start the same buckets in the same order.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <tutti/buckets.hpp>
#include <tutti/error.hpp>

#include "base/random.hpp"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Ints = std::vector<int>;
using Plan = std::vector<Ints>;

TEST(PlanBuckets, fills_up_to_the_limit_and_starts_with_a_small_one) {
  const std::vector<BucketItem> items(6, {.bytes = 10});
  EXPECT_EQ(plan_buckets(items, {}, {.bytes = 20, .first_bytes = 10}), (Plan{{0}, {1, 2}, {3, 4}, {5}}));
  EXPECT_EQ(plan_buckets(items, Ints{5, 4, 3, 2, 1, 0}, {.bytes = 30, .first_bytes = 1}),
            (Plan{{5}, {4, 3, 2}, {1, 0}}));
  EXPECT_EQ(plan_buckets(items, {}, {.bytes = 1000, .first_bytes = 1000}), (Plan{{0, 1, 2, 3, 4, 5}}));
  EXPECT_THAT(plan_buckets({}, {}), IsEmpty());
}

TEST(PlanBuckets, gives_each_dtype_buckets_of_its_own) {
  const BucketItem wide{.bytes = 10}, narrow{.bytes = 10, .dtype = DType::bfloat16};
  const std::vector<BucketItem> items = {wide, narrow, wide, narrow, wide};
  EXPECT_EQ(plan_buckets(items, {}, {.bytes = 20, .first_bytes = 20}), (Plan{{0, 2}, {1, 3}, {4}}));
  EXPECT_EQ(plan_buckets(items, {}, {.bytes = 100, .first_bytes = 100}), (Plan{{1, 3}, {0, 2, 4}}));
}

TEST(PlanBuckets, takes_what_is_larger_than_a_bucket_and_what_is_empty) {
  const std::vector<BucketItem> items = {{.bytes = 0}, {.bytes = 500}, {.bytes = 0}, {.bytes = 1}};
  EXPECT_EQ(plan_buckets(items, {}, {.bytes = 20, .first_bytes = 20}), (Plan{{0, 1}, {2, 3}}));
}

TEST(PlanBuckets, refuses_an_order_that_is_none) {
  const std::vector<BucketItem> items(3, {.bytes = 10});
  for (const Ints& order : {Ints{0, 1}, Ints{0, 1, 1}, Ints{0, 1, 3}, Ints{0, 1, 2, 2}}) {
    EXPECT_THROW((void)plan_buckets(items, order), InvalidArgument);
  }
}

TEST(BucketSchedule, starts_buckets_in_order_once_they_are_full) {
  BucketSchedule schedule({{3, 2}, {1}, {0}});
  EXPECT_THAT(schedule.ready(1), IsEmpty());  // full, but its turn has not come
  EXPECT_THAT(schedule.ready(2), IsEmpty());
  EXPECT_THAT(schedule.missing(), ElementsAre(0, 3));
  EXPECT_THAT(schedule.ready(3), ElementsAre(0, 1));
  EXPECT_FALSE(schedule.is_complete());
  EXPECT_THAT(schedule.ready(0), ElementsAre(2));
  EXPECT_TRUE(schedule.is_complete());
  EXPECT_THAT(schedule.arrivals(), ElementsAre(1, 2, 3, 0));
  schedule.begin();
  EXPECT_THAT(schedule.missing(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(schedule.arrivals(), IsEmpty());
}

TEST(BucketSchedule, starts_every_bucket_once_in_order_whatever_comes_first) {
  const std::vector<BucketItem> items(20, {.bytes = 10});
  const Plan plan = plan_buckets(items, {}, {.bytes = 30, .first_bytes = 10});
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    Ints order(items.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    BucketSchedule schedule(plan);
    Ints started;
    for (const int item : order) std::ranges::copy(schedule.ready(item), std::back_inserter(started));
    Ints expected(plan.size());
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_EQ(started, expected);
  }
}

TEST(BucketSchedule, refuses_items_that_come_twice_or_do_not_exist) {
  BucketSchedule schedule({{0}, {1}});
  EXPECT_THAT(schedule.ready(0), ElementsAre(0));
  EXPECT_THROW((void)schedule.ready(0), InvalidArgument);
  EXPECT_THROW((void)schedule.ready(2), InvalidArgument);
  EXPECT_THROW((void)schedule.ready(-1), InvalidArgument);
  EXPECT_THROW(BucketSchedule({{0}, {0}}), InvalidArgument);
  EXPECT_THROW(BucketSchedule({{0}, {5}}), InvalidArgument);
}

}  // namespace
}  // namespace tutti
