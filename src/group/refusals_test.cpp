// refusals_test.cpp: calls that a member of a group does not take part in.
// SPDX-License-Identifier: Apache-2.0
#include "group/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simulated_group.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Refusals, end_the_call_on_the_other_ranks_whether_it_was_made_before_or_after) {
  SimulatedGroup group(3);
  std::vector<float> a(4), b(4);
  const View first(a), second(b);
  const auto before = group.start(0, {.verb = Verb::all_reduce, .input = first, .output = first}, 10s);
  group.core(2).decline("the array is read-only");
  group.run_for(1s);
  const auto after = group.start(1, {.verb = Verb::all_reduce, .input = second, .output = second}, 10s);
  for (const auto& call : {before, after}) {
    EXPECT_TRUE(call->ended());
    EXPECT_THAT(error_of(*call), HasSubstr("rank 2 (host node) refused its part of the call: the array is read-only"));
  }
}

TEST(Refusals, leave_the_group_in_step_and_usable) {
  SimulatedGroup group(2);
  for (int i = 0; i < 5; ++i) group.core(i % 2).decline("no");
  std::vector<std::vector<float>> arrays(2, std::vector<float>(4, 1.0f));
  std::vector<std::shared_ptr<Operation>> calls;
  for (int rank = 0; rank < 2; ++rank) {
    const View array(arrays[static_cast<std::size_t>(rank)]);
    // What the other rank refused counts here as well, one number each.
    while (group.parts(rank).state.calls.next() < 5)
      static_cast<void>(group.start(rank, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s));
    calls.push_back(group.start(rank, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s));
  }
  group.run_for(1s);
  for (const auto& call : calls) EXPECT_TRUE(call->ended()) << error_of(*call);
  EXPECT_FALSE(group.parts(0).failure.is_broken());
  EXPECT_TRUE(group.parts(0).refusals.empty());
}

}  // namespace
}  // namespace tutti
