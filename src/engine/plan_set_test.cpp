// plan_set_test.cpp: a plan is made once for each spec, and chosen by the table.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tutti {
namespace {

Spec all_reduce_of(std::int64_t count) { return {.verb = Verb::all_reduce, .rank = 1, .size = 4, .count = count}; }

TEST(PlanSet, MakesAPlanOnce) {
  const Table table;
  PlanSet plans(table);
  const Plan& first = plans.plan_for(all_reduce_of(100), DType::float32);
  const Plan& second = plans.plan_for(all_reduce_of(100), DType::float32);
  EXPECT_EQ(&first, &second);
  EXPECT_EQ(plans.size(), 1u);
}

TEST(PlanSet, TellsShapesApart) {
  const Table table;
  PlanSet plans(table);
  Spec in_place = all_reduce_of(100);
  in_place.in_place = true;
  Spec finished = all_reduce_of(100);
  finished.finish = true;
  const Plan* made[] = {&plans.plan_for(all_reduce_of(100), DType::float32),
                        &plans.plan_for(all_reduce_of(101), DType::float32), &plans.plan_for(in_place, DType::float32),
                        &plans.plan_for(finished, DType::float32), &plans.plan_for(all_reduce_of(100), DType::float64)};
  for (const Plan* a : made) {
    EXPECT_EQ(std::count(std::begin(made), std::end(made), a), 1);
  }
}

TEST(PlanSet, FollowsTheUsersTable) {
  Table table;
  table.rows.push_back(
      {.verb = Verb::all_reduce, .bytes_min = 400, .choice = {.algorithm = Algorithm::ring, .segment_bytes = 64}});
  PlanSet plans(table);
  EXPECT_EQ(plans.plan_for(all_reduce_of(100), DType::float32).spec.algorithm, Algorithm::ring);
  EXPECT_EQ(plans.plan_for(all_reduce_of(100), DType::float32).spec.segment, 16);
  EXPECT_NE(plans.plan_for(all_reduce_of(99), DType::float32).spec.algorithm, Algorithm::ring);
}

}  // namespace
}  // namespace tutti
