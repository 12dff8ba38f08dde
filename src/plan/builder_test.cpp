// builder_test.cpp: the builder finds the dependencies, numbers the messages and leaves out what is empty.
// SPDX-License-Identifier: Apache-2.0
#include "plan/builder.hpp"

#include <gtest/gtest.h>

#include <tutti/error.hpp>

#include "verify/prove.hpp"

namespace tutti {
namespace {

const Spec two_ranks{.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .rank = 0, .size = 2, .count = 8};

std::vector<std::uint32_t> needs_of(const Plan& plan) {
  std::vector<std::uint32_t> needs;
  for (const Step& step : plan.steps) needs.push_back(step.needs);
  return needs;
}

TEST(Builder, AReadWaitsForTheWriteAndAWriteForTheReads) {
  PlanBuilder b(two_ranks);
  const Piece scratch = b.scratch(8);
  b.recv(1, scratch.part(0, 4));
  b.recv(1, scratch.part(4, 4));
  b.reduce(scratch, b.input(), b.output());  // waits for both
  b.send(1, b.output().part(2, 2));          // waits for the reduce
  b.recv(1, b.output().part(0, 3));          // overlaps what is being sent, and what was reduced
  const Plan plan = std::move(b).build();
  EXPECT_EQ(needs_of(plan), (std::vector<std::uint32_t>{0, 0, 2, 1, 2}));
  EXPECT_EQ(plan.unlocks, (std::vector<std::uint32_t>{2, 2, 3, 4, 4}));
}

TEST(Builder, StepsOnDifferentElementsDoNotWait) {
  PlanBuilder b(two_ranks);
  b.recv(1, b.output().part(0, 4));
  b.send(1, b.input());
  b.copy(b.input().part(4, 4), b.output().part(4, 4));
  EXPECT_EQ(needs_of(std::move(b).build()), (std::vector<std::uint32_t>{0, 0, 0}));
}

TEST(Builder, InPlaceTheInputIsTheOutput) {
  Spec spec = two_ranks;
  spec.in_place = true;
  PlanBuilder b(spec);
  b.send(1, b.input());
  b.recv(1, b.output());
  EXPECT_EQ(needs_of(std::move(b).build()), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Builder, InPlaceAllGatherFindsTheInputAtItsBlockOfTheOutput) {
  PlanBuilder b(
      {.verb = Verb::all_gather, .algorithm = Algorithm::ring, .rank = 1, .size = 3, .count = 4, .in_place = true});
  b.send(2, b.input());
  b.recv(0, b.output().part(0, 4));
  b.recv(0, b.output().part(6, 2));  // the second half of the own block
  EXPECT_EQ(b.copy(b.input(), b.output().part(4, 4)), PlanBuilder::no_step);
  EXPECT_EQ(needs_of(std::move(b).build()), (std::vector<std::uint32_t>{0, 0, 1}));
}

TEST(Builder, MessagesToEachPeerAreNumberedAndEmptyOnesLeftOut) {
  PlanBuilder b({.verb = Verb::broadcast, .algorithm = Algorithm::chain, .rank = 0, .size = 3, .count = 8});
  b.send(1, b.input().part(0, 4));
  b.send(2, b.input().part(0, 4));
  EXPECT_EQ(b.send(1, b.input().part(4, 0)), PlanBuilder::no_step);
  b.send(1, b.input().part(4, 4));
  const Plan plan = std::move(b).build();
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(plan.steps[0].tag, 0u);
  EXPECT_EQ(plan.steps[1].tag, 0u);
  EXPECT_EQ(plan.steps[2].tag, 1u);
}

TEST(Builder, BarrierSendsEmptyMessages) {
  PlanBuilder b({.verb = Verb::barrier, .algorithm = Algorithm::dissemination, .rank = 0, .size = 2});
  EXPECT_EQ(b.send(1, {}), 0u);
}

TEST(Builder, OrderThatDoesNotFollowFromDataCanBeAsked) {
  PlanBuilder b(two_ranks);
  const std::uint32_t first = b.send(1, b.input().part(0, 4));
  b.after(first);
  b.send(1, b.input().part(4, 4));
  EXPECT_EQ(needs_of(std::move(b).build()), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Builder, AnAlgorithmThatWritesToItsInputIsAnError) {
  PlanBuilder b(two_ranks);
  EXPECT_THROW(b.recv(1, b.input()), std::logic_error);
}

TEST(MakePlan, ARefusalSaysWhoWhatAndWhy) {
  const auto message = [](const Spec& spec) {
    try {
      make_plan(spec);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({.verb = Verb::scan, .algorithm = Algorithm::bruck, .rank = 1, .size = 4}),
            "rank 1 of 4: no plan for scan: the algorithm bruck does not serve it");
  EXPECT_EQ(message({.verb = Verb::broadcast, .rank = 0, .size = 2, .root = 2}),
            "rank 0 of 2: no plan for broadcast: root 2 is outside the group");
  EXPECT_EQ(message({.verb = Verb::all_reduce, .rank = 0, .size = 2, .count = -1}),
            "rank 0 of 2: no plan for all_reduce: the count -1 is negative");
  EXPECT_EQ(message({.verb = Verb::permute, .rank = 0, .size = 3, .pairs = {{0, 1}, {2, 1}}}),
            "rank 0 of 3: no plan for permute: rank 1 is the destination of two pairs");
  EXPECT_EQ(message({.verb = Verb::all_gather, .rank = 0, .size = 3, .counts = {1, 2}}),
            "rank 0 of 3: no plan for all_gather: counts has 2 entries, one per rank is needed");
}

TEST(MakePlan, AGroupOfOneCopiesOrDoesNothing) {
  EXPECT_EQ(make_plan({.verb = Verb::all_reduce, .count = 4}).steps.size(), 1u);
  EXPECT_EQ(make_plan({.verb = Verb::all_reduce, .count = 4, .in_place = true}).steps.size(), 0u);
  EXPECT_EQ(make_plan({.verb = Verb::barrier}).steps.size(), 0u);
}

// The simulator builds plans for thousands of ranks: the work per step must not grow with the number of steps.
TEST(MakePlan, AThousandRanksAreCheapPerStep) {
  const Plan plan =
      make_plan({.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .rank = 5, .size = 4096, .count = 1 << 20});
  EXPECT_EQ(plan.steps.size(), 4095u * 5);
  EXPECT_LE(plan.unlocks.size(), plan.steps.size() * 3);
}

}  // namespace
}  // namespace tutti
