// plan_cache_test.cpp: a plan is made once per shape of request, and chosen by the table.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_cache.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

Spec all_reduce_of(std::int64_t count) { return {.verb = Verb::all_reduce, .rank = 1, .size = 4, .count = count}; }

TEST(PlanCache, MakesAPlanOnce) {
  PlanCache cache(Table{});
  const Plan& first = cache.plan_for(all_reduce_of(100), DType::float32);
  const Plan& second = cache.plan_for(all_reduce_of(100), DType::float32);
  EXPECT_EQ(&first, &second);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(PlanCache, TellsShapesApart) {
  PlanCache cache(Table{});
  Spec in_place = all_reduce_of(100);
  in_place.in_place = true;
  Spec finished = all_reduce_of(100);
  finished.finish = true;
  const Plan* plans[] = {&cache.plan_for(all_reduce_of(100), DType::float32),
                         &cache.plan_for(all_reduce_of(101), DType::float32), &cache.plan_for(in_place, DType::float32),
                         &cache.plan_for(finished, DType::float32),
                         &cache.plan_for(all_reduce_of(100), DType::float64)};
  for (const Plan* a : plans) {
    EXPECT_EQ(std::count(std::begin(plans), std::end(plans), a), 1);
  }
}

TEST(PlanCache, FollowsTheUsersTable) {
  Table table;
  table.rows.push_back(
      {.verb = Verb::all_reduce, .bytes_min = 400, .choice = {.algorithm = Algorithm::ring, .segment_bytes = 64}});
  PlanCache cache(table);
  EXPECT_EQ(cache.plan_for(all_reduce_of(100), DType::float32).spec.algorithm, Algorithm::ring);
  EXPECT_EQ(cache.plan_for(all_reduce_of(100), DType::float32).spec.segment, 16);
  EXPECT_NE(cache.plan_for(all_reduce_of(99), DType::float32).spec.algorithm, Algorithm::ring);
}

TEST(PlanCache, LetsGoOfPlansWhenThereAreTooMany) {
  PlanCache cache(Table{});
  for (std::int64_t count = 0; count < 600; ++count) (void)cache.plan_for(all_reduce_of(count), DType::int8);
  EXPECT_EQ(cache.size(), 600u);
  cache.trim();
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace tutti
