// stall_watch_test.cpp: who is asked about a call that takes long, and what is reported.
// SPDX-License-Identifier: Apache-2.0
#include "group/stall_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simulated_group.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class StallWatchOf : public testing::Test {
 protected:
  std::shared_ptr<Operation> start(SimulatedGroup& group, int rank, Duration timeout) {
    return group.start(rank, {.verb = Verb::all_reduce, .input = array_, .output = array_}, timeout);
  }
  std::vector<float> data_ = std::vector<float>(4);
  View array_{data_};
};

TEST_F(StallWatchOf, a_call_that_waits_asks_after_a_tenth_of_a_second_and_not_before) {
  SimulatedGroup group(2);
  const TimePoint begin = group.now();
  const auto call = start(group, 0, 60s);
  group.run_for(90ms);
  EXPECT_FALSE(group.parts(0).state.stalls.answered(1, 0, begin));
  group.run_for(100ms);
  EXPECT_TRUE(group.parts(0).state.stalls.answered(1, 0, begin));
}

TEST_F(StallWatchOf, a_missed_deadline_names_the_rank_that_did_not_come) {
  SimulatedGroup group(3);
  const auto call = start(group, 0, 2s);
  const auto other = start(group, 1, 2s);
  group.run_for(5s);
  EXPECT_THAT(error_of(*call), HasSubstr("timed out after 2 s"));
  EXPECT_THAT(error_of(*call), HasSubstr("rank 2 (host node), which has not entered the call (its next is #0)"));
  EXPECT_THAT(error_of(*other), HasSubstr("rank 2 (host node)"));
}

TEST_F(StallWatchOf, a_rank_that_came_after_the_last_question_is_not_said_to_be_missing) {
  SimulatedGroup group(3);
  const auto call = start(group, 0, 2s);
  group.run_for(1900ms);
  const auto late = start(group, 1, 60s);
  group.run_for(3s);
  EXPECT_THAT(error_of(*call), HasSubstr("rank 2 (host node), which has not entered the call"));
  EXPECT_THAT(error_of(*call), Not(HasSubstr("rank 1")));
}

TEST_F(StallWatchOf, a_long_wait_is_reported_once_by_the_lowest_rank_that_waits) {
  SimulatedGroup group(3);
  const auto second = start(group, 1, 300s);
  const auto third = start(group, 2, 300s);
  group.run_for(60s);
  EXPECT_THAT(group.log, HasSubstr("has waited for 10 s on rank 1"));
  EXPECT_THAT(group.log, Not(HasSubstr("on rank 2 ")));
  EXPECT_EQ(group.log.find("has waited"), group.log.rfind("has waited"));
}

TEST_F(StallWatchOf, a_failure_that_may_have_been_with_anyone_is_one_of_its_own_once_all_have_answered) {
  SimulatedGroup group(3);
  const auto call = start(group, 0, 60s);
  group.run_for(500ms);  // what they answered before the failure does not count
  group.parts(0).running.mark_failing(*call, {.reason = "no network", .world_peers = {1, 2}});
  EXPECT_FALSE(call->ended());
  group.run_for(1s);
  EXPECT_THAT(error_of(*call), HasSubstr("failed on rank 0: no network"));
  EXPECT_THAT(error_of(*call), Not(HasSubstr("rank 1")));
}

TEST_F(StallWatchOf, an_answer_tells_how_far_the_rank_is) {
  SimulatedGroup group(2);
  using State = StallAnswer::State;
  const StallProbe ahead{.group = SimulatedGroup::id, .signature = {.sequence = 5, .verb = Verb::barrier}};
  const StallAnswer early = group.parts(0).stall_watch.answer(1, ahead, "");
  EXPECT_EQ(early.state, State::not_there_yet);
  EXPECT_EQ(early.next_sequence, 0u);

  const auto call = start(group, 0, 60s);
  StallProbe same{.group = SimulatedGroup::id, .signature = call->request.signature};
  EXPECT_EQ(group.parts(0).stall_watch.answer(1, same, "").state, State::waiting);
  const auto theirs = start(group, 1, 60s);
  group.run_for(1s);
  EXPECT_EQ(group.parts(0).stall_watch.answer(1, same, "").state, State::past_it);
}

TEST_F(StallWatchOf, a_question_about_another_call_of_the_same_number_is_a_mismatch) {
  SimulatedGroup group(2);
  const auto call = start(group, 0, 60s);
  const StallProbe other{.group = SimulatedGroup::id, .signature = {.sequence = 0, .verb = Verb::barrier}};
  EXPECT_EQ(group.parts(0).stall_watch.answer(1, other, "").state, StallAnswer::State::waiting);
  EXPECT_TRUE(group.parts(0).running.is_stopped());
}

}  // namespace
}  // namespace tutti
