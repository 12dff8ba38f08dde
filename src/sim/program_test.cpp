// program_test.cpp: programs are plans, with nothing lost that time depends on.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program.hpp"

#include <gtest/gtest.h>

#include "sim/draft.hpp"
#include "sim/workload.hpp"

namespace tutti::sim {
namespace {

struct Sums {
  std::int64_t sent = 0, received = 0, sends = 0, receives = 0, copied = 0, reduced = 0;
  friend bool operator==(const Sums&, const Sums&) = default;
};

Sums sums_of(const Plan& plan) {
  Sums sums;
  for (const Step& step : plan.steps) {
    switch (step.act) {
      case Act::send: sums.sent += 4 * step.from.count, ++sums.sends; break;
      case Act::recv: sums.received += 4 * step.to.count, ++sums.receives; break;
      case Act::reduce:
      case Act::finish: sums.reduced += 4 * step.to.count; break;
      default: sums.copied += 4 * step.to.count;
    }
  }
  return sums;
}

Sums sums_of(const Program& program) {
  Sums sums;
  for (const Task& task : program.tasks) {
    switch (task.work) {
      case Work::send: sums.sent += task.bytes, ++sums.sends; break;
      case Work::recv: sums.received += task.bytes, ++sums.receives; break;
      default: sums.copied += task.bytes, sums.reduced += task.reduced_bytes;
    }
  }
  return sums;
}

Question question_of(const CatalogRow& row, std::int64_t bytes, std::int64_t segment = 0) {
  return {.verb = row.verb, .bytes = bytes, .choice = {.algorithm = row.algorithm, .segment_bytes = segment}};
}

TEST(Program, DoesTheWorkOfItsPlan) {
  for (const CatalogRow& row : catalog()) {
    if (row.algorithm == Algorithm::hierarchical) continue;
    for (const int size : {2, 3, 8, 13}) {
      for (const std::int64_t segment : {0, 64}) {
        Spec spec = spec_of(question_of(row, 1000, segment), {.ranks = size});
        for (spec.rank = 0; spec.rank < size; ++spec.rank) {
          const Plan plan = make_plan(spec);
          SCOPED_TRACE(std::string(name_of(row.verb)) + " by " + std::string(name_of(row.algorithm)));
          EXPECT_EQ(sums_of(compile(plan, 4, {})), sums_of(plan));
        }
      }
    }
  }
}

TEST(Program, CopiesThatWaitForTheSameAreOneTask) {
  const CatalogRow* bruck = find_algorithm(Verb::all_to_all, Algorithm::bruck);
  const Plan plan = make_plan(spec_of(question_of(*bruck, 64 * 64 * 4), {.ranks = 64}));
  const Program program = compile(plan, 4, {});
  EXPECT_GT(plan.steps.size(), 150u);
  EXPECT_LT(program.size(), 50u);
}

TEST(Program, ASubRequestStandsInPlaceOfItsCallAndWaitsForWhatItNeeds) {
  const CatalogRow* row = find_algorithm(Verb::all_reduce, Algorithm::hierarchical);
  const Plan plan = make_plan(spec_of(question_of(*row, 4096), {.ranks = 8, .ranks_per_host = 2}));
  ASSERT_EQ(plan.calls.size(), 3u);
  const Program program = compile(plan, 4, {});
  std::size_t first = 0;  // tasks that may start at once: only the first call's
  for (std::size_t i = 0; i < program.size(); ++i) first += program.tasks[i].needs == 0 ? 1 : 0;
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(program.tasks[0].work, Work::join);
  EXPECT_GT(sums_of(program).sends, 2);
}

TEST(Draft, OnlyLocalWorkIsJoined) {
  Draft draft;
  draft.nodes = {{.work = Work::recv, .peer = 1, .bytes = 8}, {.work = Work::local, .bytes = 4},
                 {.work = Work::local, .bytes = 4},           {.work = Work::local, .bytes = 7},
                 {.work = Work::send, .peer = 1, .bytes = 8}, {.work = Work::send, .peer = 2, .bytes = 8}};
  draft.edges = {{0, 1}, {0, 2}, {1, 4}, {2, 4}, {3, 4}, {0, 5}};
  join_twins(draft);
  ASSERT_EQ(draft.nodes.size(), 5u);
  EXPECT_EQ(draft.nodes[1].bytes, 8);  // both wait for the receive, the send waits for both
  EXPECT_EQ(draft.nodes[2].bytes, 7);  // waits for nothing
  EXPECT_EQ(draft.edges.size(), 4u);
}

}  // namespace
}  // namespace tutti::sim
