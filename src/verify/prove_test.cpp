// prove_test.cpp: prove accepts right plans and notices each way in which a plan can be wrong.
// SPDX-License-Identifier: Apache-2.0
#include "verify/prove.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/catalog.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

std::vector<Plan> ring(bool finish = false) {
  return make_plans({.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .size = 4, .count = 8, .finish = finish});
}

Step& nth(Plan& plan, Act act, int n = 0) {
  for (Step& step : plan.steps) {
    if (step.act == act && n-- == 0) return step;
  }
  throw std::out_of_range("no such step");
}

std::string failure(const std::vector<Plan>& plans) { return Prover().prove(plans, 1).failure; }

TEST(Prove, ARightPlanIsProved) { EXPECT_EQ(failure(ring()), ""); }

TEST(Prove, AMissingContributionIsNoticed) {
  auto plans = ring();
  nth(plans[1], Act::reduce).act = Act::copy;
  EXPECT_THAT(failure(plans),
              HasSubstr("should hold the contributions of ranks 0 to 3, each once, not finished, but holds"));
}

TEST(Prove, ADoubledContributionIsNoticed) {
  auto plans = ring();
  Step& step = nth(plans[2], Act::reduce);
  step.with = step.from;
  EXPECT_THAT(failure(plans), HasSubstr("each once"));
}

TEST(Prove, AContributionFromAWrongOffsetIsNoticed) {
  auto plans = ring();
  Step& step = nth(plans[2], Act::reduce);
  step.with.offset = (step.with.offset + 2) % 8;
  EXPECT_THAT(failure(plans), HasSubstr("each once"));
}

TEST(Prove, ASwappedPeerIsNoticed) {
  auto plans = ring();
  nth(plans[0], Act::send).peer = 2;
  EXPECT_NE(failure(plans), "");
}

TEST(Prove, AMessageThatNobodyReceivesIsNoticed) {
  auto plans = ring();
  Step& step = nth(plans[3], Act::recv, 5);
  step.act = Act::zero;
  EXPECT_THAT(failure(plans), HasSubstr("rank 2 sends 6 messages to rank 3, which receives 5"));
}

TEST(Prove, CountsThatDifferBetweenTheTwoSidesAreNoticed) {
  auto plans = ring();
  nth(plans[0], Act::send, 3).from.count = 1;
  EXPECT_THAT(failure(plans), HasSubstr("sends 1 elements"));
}

TEST(Prove, ARemovedDependencyIsNoticedForEveryOneOfThem) {
  const auto whole = ring();
  for (std::size_t edge = 0; edge < whole[1].unlocks.size(); ++edge) {
    auto plans = whole;
    Plan& plan = plans[1];
    --plan.steps[plan.unlocks[edge]].needs;
    plan.unlocks.erase(plan.unlocks.begin() + static_cast<std::ptrdiff_t>(edge));
    for (std::uint32_t& begin : plan.unlock_begin) begin -= begin > edge ? 1 : 0;
    // Some dependencies also follow from others; the ring's do not.
    EXPECT_THAT(failure(plans), HasSubstr("at the same time")) << "edge " << edge;
  }
}

TEST(Prove, NeedsThatDisagreeWithTheSuccessorsAreNoticed) {
  auto plans = ring();
  ++nth(plans[0], Act::reduce).needs;
  EXPECT_THAT(failure(plans), HasSubstr("says it needs"));
}

TEST(Prove, WritingToTheInputIsNoticed) {
  auto plans = ring();
  nth(plans[0], Act::reduce, 2).to.space = Space::input;
  EXPECT_THAT(failure(plans), HasSubstr("writes to the input"));
}

TEST(Prove, APieceOutOfBoundsIsNoticed) {
  auto plans = ring();
  nth(plans[0], Act::recv).to.offset = 100;
  EXPECT_THAT(failure(plans), HasSubstr("out of bounds"));
}

TEST(Prove, AMissingOrDoubledFinishIsNoticed) {
  auto plans = ring(true);
  Step& step = nth(plans[0], Act::finish);
  const Piece piece = step.to;
  step = {.act = Act::copy, .needs = step.needs, .from = piece, .to = piece};
  EXPECT_THAT(failure(plans), HasSubstr("finished once, but holds ("));

  plans = ring(true);
  Step& last = nth(plans[0], Act::reduce, 2);
  EXPECT_EQ(failure(plans), "");
  nth(plans[0], Act::reduce, 1).act = Act::finish;  // a partial sum, which is reduced again
  EXPECT_THAT(failure(plans), HasSubstr("reduced or finished wrongly"));
  EXPECT_EQ(last.act, Act::reduce);
}

TEST(Prove, TooMuchScratchIsNoticed) {
  auto plans = ring();
  plans[2].scratch_count += 1;
  EXPECT_THAT(failure(plans), HasSubstr("rank 2: takes 5 elements of scratch, 4 are declared"));
}

TEST(Prove, AnotherOrderOfReductionOnOneRankIsNoticed) {
  auto plans =
      make_plans({.verb = Verb::all_reduce, .algorithm = Algorithm::recursive_doubling, .size = 4, .count = 2});
  Step& step = nth(plans[2], Act::reduce, 1);
  std::swap(step.from, step.with);
  EXPECT_THAT(failure(plans), HasSubstr("another order of reduction, so other bits"));
}

TEST(Prove, ADeadlockIsNoticed) {
  // Two ranks that each receive before they send.
  std::vector<Plan> plans = make_plans(
      {.verb = Verb::permute, .algorithm = Algorithm::direct, .size = 2, .count = 3, .pairs = {{0, 1}, {1, 0}}});
  for (Plan& plan : plans) {
    ASSERT_EQ(plan.steps.size(), 2u);
    std::swap(plan.steps[0], plan.steps[1]);
    plan.steps[1].needs = 1;
    plan.unlocks = {1};
    plan.unlock_begin = {0, 1, 1};
  }
  EXPECT_THAT(failure(plans), HasSubstr("deadlock: 4 steps never end; rank 0 step 0 waits for rank 1 step 1"));
}

TEST(Prove, AnOutputThatMustNotBeTouchedIsWatched) {
  // In place, the ranks that are not the root must get their input back.
  auto plans =
      make_plans({.verb = Verb::reduce, .algorithm = Algorithm::chain, .size = 3, .count = 2, .in_place = true});
  EXPECT_EQ(failure(plans), "");
  nth(plans[1], Act::reduce).to = {Space::input, 0, 2};
  EXPECT_NE(failure(plans), "");
}

TEST(Prove, SubgroupsThatDisagreeAreNoticed) {
  auto plans = make_plans(
      {.verb = Verb::all_reduce, .algorithm = Algorithm::hierarchical, .size = 4, .count = 8, .node_of = {0, 0, 1, 1}});
  EXPECT_EQ(failure(plans), "");
  plans[1].calls[0].counts = {3, 5};
  EXPECT_THAT(failure(plans), HasSubstr("disagree on a reduce_scatter"));
}

TEST(Prove, EveryRowOfTheCatalogueIsProvedForAFewSizes) {
  Prover prover;
  for (const CatalogRow& row : catalog()) {
    for (const int size : {1, 2, 3, 5, 8, 13}) {
      Spec spec{.verb = row.verb,
                .algorithm = row.algorithm,
                .size = size,
                .root = size / 2,
                .count = 2 * size + 1,
                .finish = reduces(row.verb),
                .segment = 2};
      for (int rank = 0; rank < size; ++rank) spec.node_of.push_back(rank % 3);
      const Proof proof = prover.prove(make_plans(spec), 7);
      EXPECT_TRUE(proof.holds()) << name_of(row.verb) << " by " << name_of(row.algorithm) << ", size " << size << ": "
                                 << proof.failure;
    }
  }
}

}  // namespace
}  // namespace tutti
