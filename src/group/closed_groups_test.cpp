// closed_groups_test.cpp: what is found out about a group after its handle is gone.
// SPDX-License-Identifier: Apache-2.0
#include "group/closed_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simulated_group.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using State = StallAnswer::State;

std::string words_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
  return {};
}

TEST(ClosedGroups, keep_how_far_the_rank_came) {
  SimulatedGroup group(2);
  group.core(0).decline("no");
  group.close(0);
  const auto positions = group.runtime(0).directory().positions();
  ASSERT_EQ(positions.size(), 1u);
  EXPECT_EQ(positions[0].group, SimulatedGroup::id);
  EXPECT_EQ(positions[0].calls, 1u);
}

TEST(ClosedGroups, a_goodbye_after_another_number_of_calls_is_a_difference) {
  SimulatedGroup group(2);
  group.close(0);
  ClosedGroups& closed = group.runtime(0).directory().closed();
  closed.compare(1, {.group = SimulatedGroup::id, .calls = 3}, group.now());
  EXPECT_FALSE(closed.has_late_error());
  closed.note_all_late();
  EXPECT_THAT(words_of(closed.take_late_error()),
              testing::HasSubstr("rank 1 left after 3 calls of the group, rank 0 ends it after 0"));
}

TEST(ClosedGroups, a_question_about_a_group_that_was_never_there_is_answered_so) {
  SimulatedGroup group(2);
  EXPECT_EQ(group.runtime(0).directory().closed().answer(1, {.group = 77}), State::unknown_group);
}

TEST(ClosedGroups, a_peer_that_finds_the_calls_the_same_takes_the_difference_back) {
  SimulatedGroup group(2);
  group.close(0);
  ClosedGroups& closed = group.runtime(0).directory().closed();
  closed.compare(1, {.group = SimulatedGroup::id, .calls = 0, .history = 12345}, group.now());
  EXPECT_TRUE(closed.pursue(group.now()));
  closed.take_answer(1, {.group = SimulatedGroup::id, .state = State::agrees});
  EXPECT_FALSE(closed.pursue(group.now()));
  closed.note_all_late();
  EXPECT_FALSE(closed.has_late_error());
}

}  // namespace
}  // namespace tutti
