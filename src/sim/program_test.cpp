// program_test.cpp: programs are plans, with nothing lost that time depends on.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program.hpp"

#include <gtest/gtest.h>

#include "sim/expanded_plan.hpp"
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

TEST(Program, CallsFollowOneAnother) {
  const CatalogRow* ring = find_algorithm(Verb::all_reduce, Algorithm::ring);
  const Program once = compile(make_plan(spec_of(question_of(*ring, 4096), {.ranks = 4})), 4, {});
  const Program thrice = repeated(once, 3);
  ASSERT_EQ(thrice.size(), 3 * once.size() + 2);
  EXPECT_EQ(sums_of(thrice).sent, 3 * sums_of(once).sent);
  EXPECT_EQ(sums_of(thrice).reduced, 3 * sums_of(once).reduced);
  std::size_t first = 0, first_of_one = 0;
  for (std::size_t i = 0; i < thrice.size(); ++i) first += thrice.tasks[i].needs == 0 ? 1 : 0;
  for (std::size_t i = 0; i < once.size(); ++i) first_of_one += once.tasks[i].needs == 0 ? 1 : 0;
  EXPECT_EQ(first, first_of_one) << "only the first call begins by itself";
  EXPECT_EQ(thrice.tasks[once.size()].work, Work::call);
  EXPECT_EQ(thrice.unlocked_by(static_cast<std::uint32_t>(once.size())).size(), first_of_one);
  // Each message has a number of its own.
  const Exchanges sends({thrice.tasks.data(), thrice.size()}, Work::send);
  const auto messages = static_cast<std::uint32_t>(sums_of(once).sends);
  EXPECT_GT(sends.task(1, messages), once.size());
  EXPECT_LT(sends.task(1, messages), sends.task(1, 2 * messages));
}

TEST(Program, CallsWithoutTasksAreEnteredAllTheSame) {
  const CatalogRow* row = find_algorithm(Verb::barrier, Algorithm::dissemination);
  const Program once = compile(make_plan(spec_of(question_of(*row, 0), {.ranks = 1})), 4, {});
  ASSERT_EQ(once.size(), 0u);
  const Program thrice = repeated(once, 3);
  ASSERT_EQ(thrice.size(), 2u);
  EXPECT_EQ(thrice.tasks[0].needs, 0u);
  EXPECT_EQ(thrice.tasks[1].needs, 1u);
}

TEST(Program, KnowsTheReuseDistanceOfARange) {
  // Direct: a block goes to each of three others, and theirs come in. The first time a block is touched, all the rest was in between.
  const CatalogRow* direct = find_algorithm(Verb::all_gather, Algorithm::direct);
  const std::int64_t block = 1 << 20, all = 5 * block;  // the input and four blocks of output
  const Program program = compile(make_plan(spec_of(question_of(*direct, 4 * block), {.ranks = 4})), 4, {});
  std::vector<std::int64_t> sent, received;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program.tasks[i].work == Work::send) sent.push_back(program.tasks[i].bytes_since);
    if (program.tasks[i].work == Work::recv) received.push_back(program.tasks[i].bytes_since);
  }
  EXPECT_EQ(sent, (std::vector<std::int64_t>{all, 2 * block, 2 * block}));
  EXPECT_EQ(received, (std::vector<std::int64_t>{all, all, all}));
}

TEST(ExpandedPlan, OnlyLocalWorkIsJoined) {
  ExpandedPlan expanded;
  expanded.nodes = {{.work = Work::recv, .peer = 1, .bytes = 8}, {.work = Work::local, .bytes = 4},
                    {.work = Work::local, .bytes = 4},           {.work = Work::local, .bytes = 7},
                    {.work = Work::send, .peer = 1, .bytes = 8}, {.work = Work::send, .peer = 2, .bytes = 8}};
  expanded.edges = {{0, 1}, {0, 2}, {1, 4}, {2, 4}, {3, 4}, {0, 5}};
  merge_equivalent_nodes(expanded);
  ASSERT_EQ(expanded.nodes.size(), 5u);
  EXPECT_EQ(expanded.nodes[1].bytes, 8);  // both wait for the receive, the send waits for both
  EXPECT_EQ(expanded.nodes[2].bytes, 7);  // waits for nothing
  EXPECT_EQ(expanded.edges.size(), 4u);
}

}  // namespace
}  // namespace tutti::sim
