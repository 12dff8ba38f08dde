// failure_test.cpp: the cause that breaks a group.
// SPDX-License-Identifier: Apache-2.0
#include "group/failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

#include "tests/support/simulated_group.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

control::Cause cause(const std::string& text) {
  return {.kind = control::Cause::Kind::aborted, .culprits = {}, .sequence = 0, .text = text};
}

TEST(GroupFailure, of_one_ranks_proposal_has_the_same_cause_on_every_rank) {
  SimulatedGroup group(3);
  group.parts(1).failure.propose(cause("the disk is full"));
  EXPECT_FALSE(group.parts(1).failure.is_broken());
  group.run_for(1s);
  for (int rank = 0; rank < 3; ++rank) {
    try {
      group.parts(rank).failure.check_usable();
      FAIL() << "rank " << rank << " takes the group for usable";
    } catch (const Aborted& error) {
      EXPECT_THAT(error.what(), HasSubstr("the disk is full"));
    }
  }
}

TEST(GroupFailure, keeps_its_first_cause) {
  SimulatedGroup group(1);
  GroupFailure& failure = group.parts(0).failure;
  failure.break_with(cause("first"));
  failure.break_with(cause("second"));
  failure.propose(cause("third"));
  EXPECT_EQ(failure.proposed(), nullptr);
  EXPECT_THAT([&] { failure.check_usable(); }, testing::ThrowsMessage<Aborted>(HasSubstr("first")));
}

TEST(GroupFailure, in_a_group_of_one_needs_no_agreement) {
  SimulatedGroup group(1);
  group.parts(0).failure.propose(cause("alone"));
  EXPECT_TRUE(group.parts(0).failure.is_broken());
}

TEST(GroupFailure, breaks_the_group_here_if_the_others_do_not_agree_in_time) {
  SimulatedGroup group(2);
  GroupFailure& failure = group.parts(0).failure;
  failure.propose(cause("nobody hears this"));
  EXPECT_TRUE(group.parts(0).running.is_stopped());
  EXPECT_TRUE(failure.is_agreeing(group.now() + 9s));
  EXPECT_FALSE(failure.is_broken());
  EXPECT_TRUE(failure.is_agreeing(group.now() + 11s));
  EXPECT_TRUE(failure.is_broken());
}

TEST(GroupFailure, an_interrupted_receive_ends_alone_and_an_interrupted_collective_breaks_the_group) {
  SimulatedGroup group(2);
  std::vector<float> data(4);
  const auto receive = group.core(0).start_message(nullptr, {.verb = Verb::recv, .data = View(data), .peer = 1});
  group.core(0).interrupt(*receive);
  EXPECT_TRUE(receive->ended());
  EXPECT_THAT(error_of(*receive), HasSubstr("rank 0 was interrupted in recv"));
  EXPECT_FALSE(group.parts(0).failure.is_certain());

  const View array(data);
  const auto call = group.start(0, {.verb = Verb::all_reduce, .input = array, .output = array});
  group.core(0).interrupt(*call);
  EXPECT_TRUE(call->ended());
  group.run_for(1s);
  EXPECT_TRUE(group.parts(0).failure.is_broken());
  EXPECT_TRUE(group.parts(1).failure.is_broken());
}

}  // namespace
}  // namespace tutti
