// workload_test.cpp: ranks that share a program have the plans they would have had.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload.hpp"

#include <gtest/gtest.h>

#include "sim/simulate.hpp"

namespace tutti::sim {
namespace {

Question question_of(const CatalogRow& row, std::int64_t bytes, std::int64_t segment = 0) {
  return {.verb = row.verb, .bytes = bytes, .choice = {.algorithm = row.algorithm, .segment_bytes = segment}};
}

std::string name_of_row(const CatalogRow& row) {
  return std::string(name_of(row.verb)) + " by " + std::string(name_of(row.algorithm));
}

TEST(Workload, PlansThatAreSaidToRotateDoForEveryRank) {
  int rotating = 0;
  for (const CatalogRow& row : catalog()) {
    for (int size = 2; size <= 17; ++size) {
      for (const std::int64_t bytes : {4, 240, 4 * 5040}) {
        for (const std::int64_t segment : {0, 32}) {
          Spec spec = spec_of(question_of(row, bytes, segment), {.ranks = size});
          if (!rotates(spec)) continue;
          ++rotating;
          const Program first = compile(make_plan(spec), 4, {});
          for (spec.rank = 1; spec.rank < size; ++spec.rank) {
            ASSERT_EQ(compile(make_plan(spec), 4, {}), first)
                << name_of_row(row) << ", rank " << spec.rank << " of " << size << ", " << bytes << " bytes";
          }
        }
      }
    }
  }
  EXPECT_GT(rotating, 300);
}

TEST(Workload, EveryRankHasTheProgramOfItsPlan) {
  const Cluster cluster{.ranks = 24, .ranks_per_host = 4};
  for (const CatalogRow& row : catalog()) {
    const Question question = question_of(row, 5000);
    const auto workload = make_workload(question, cluster, {});
    ASSERT_TRUE(workload) << name_of_row(row);
    Spec spec = spec_of(question, cluster);
    for (spec.rank = 0; spec.rank < workload->period; ++spec.rank) {
      EXPECT_EQ(workload->of(spec.rank), compile(make_plan(spec), 4, {})) << name_of_row(row) << " rank " << spec.rank;
    }
  }
}

TEST(Workload, OneHostStandsForAllWhereAllActAlike) {
  const Cluster cluster{.ranks = 32, .ranks_per_host = 4};
  for (const auto& [verb, algorithm] :
       {std::pair{Verb::all_reduce, Algorithm::ring}, std::pair{Verb::all_gather, Algorithm::direct},
        std::pair{Verb::all_to_all, Algorithm::pairwise}, std::pair{Verb::barrier, Algorithm::dissemination}}) {
    for (const std::int64_t bytes : {4 * 32, 1 << 16, 32 << 20}) {
      Question question = question_of(*find_algorithm(verb, algorithm), bytes);
      const auto short_way = make_workload(question, cluster, {});
      question.every_rank = true;
      const auto long_way = make_workload(question, cluster, {});
      EXPECT_EQ(short_way->period, 4);
      EXPECT_EQ(long_way->period, 32);
      const Outcome one = simulate(*short_way, cluster), all = simulate(*long_way, cluster);
      SCOPED_TRACE(name_of_row(*find_algorithm(verb, algorithm)) + ", " + std::to_string(bytes) + " bytes");
      // Where messages meet at the same instant, somebody goes first: that is all that may differ.
      EXPECT_NEAR(one.seconds, all.seconds, 0.02 * all.seconds);
      EXPECT_EQ(one.rounds, all.rounds);
      EXPECT_EQ(one.messages, all.messages);
      EXPECT_EQ(one.rank_bytes, all.rank_bytes);
      EXPECT_EQ(one.ended, 32);
      EXPECT_EQ(all.ended, 32);
    }
  }
}

TEST(Workload, ASlowRankMakesEveryRankCount) {
  const Cluster cluster{.ranks = 8, .ranks_per_host = 2, .slow = {{.rank = 3, .factor = 2}}};
  const auto workload =
      make_workload(question_of(*find_algorithm(Verb::all_reduce, Algorithm::ring), 4096), cluster, {});
  EXPECT_EQ(workload->period, 8);
}

TEST(Workload, WhatWouldTakeTooManyTasksIsNotMade) {
  Question question = question_of(*find_algorithm(Verb::broadcast, Algorithm::chain), 1 << 20, 4);
  question.tasks_max = 1000;
  EXPECT_FALSE(make_workload(question, {.ranks = 8}, {}));
}

}  // namespace
}  // namespace tutti::sim
