// running_operations_test.cpp: which calls of a group may run, and how they end.
// SPDX-License-Identifier: Apache-2.0
#include "group/running_operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simulated_group.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

TEST(RunningOperations, calls_whose_memory_overlaps_run_in_the_order_of_their_numbers) {
  SimulatedGroup group(2);
  std::vector<std::vector<float>> arrays(2, std::vector<float>(8, 1.0f));
  std::vector<float> others(8, 1.0f);
  std::vector<std::shared_ptr<Operation>> calls;
  for (int rank = 0; rank < 2; ++rank) {
    const View array(arrays[static_cast<std::size_t>(rank)]);
    const CallTerms terms{.verb = Verb::all_reduce, .input = array, .output = array};
    calls.push_back(group.start(rank, terms));
    calls.push_back(group.start(rank, terms));
    EXPECT_FALSE(calls[calls.size() - 2]->waits_for_turn);
    EXPECT_TRUE(calls.back()->waits_for_turn);
  }
  const View apart(others);
  const auto free = group.start(0, {.verb = Verb::broadcast, .input = apart, .output = apart});
  EXPECT_FALSE(free->waits_for_turn);
  group.run_for(1s);
  for (const auto& call : calls) EXPECT_TRUE(call->ended());
  EXPECT_THAT(arrays[0], testing::Each(4.0f));
  EXPECT_THAT(arrays[1], testing::Each(4.0f));
}

TEST(RunningOperations, an_operation_that_nobody_holds_is_taken_again) {
  SimulatedGroup group(1);
  RunningOperations& running = group.parts(0).running;
  auto first = running.take();
  const Operation* const address = first.get();
  const auto second = running.take();
  EXPECT_NE(second.get(), address);
  first.reset();
  EXPECT_EQ(running.take().get(), address);
}

TEST(RunningOperations, nothing_ends_well_once_they_are_stopped) {
  SimulatedGroup group(2);
  std::vector<float> a(8), b(8);
  const View array(a), other(b);
  const auto call = group.start(0, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s);
  group.parts(0).running.stop();
  const auto theirs = group.start(1, {.verb = Verb::all_reduce, .input = other, .output = other}, 10s);
  group.run_for(1s);
  EXPECT_FALSE(call->ended());
  EXPECT_EQ(group.parts(0).running.oldest(nullptr), call.get());
  EXPECT_EQ(group.parts(0).running.oldest(call.get()), nullptr);
}

TEST(RunningOperations, the_earliest_deadline_is_that_of_the_call_with_least_time) {
  SimulatedGroup group(2);
  std::vector<float> a(8), b(8);
  const View array(a), other(b);
  const auto slow = group.start(0, {.verb = Verb::all_reduce, .input = array, .output = array}, 60s);
  const auto fast = group.start(0, {.verb = Verb::all_reduce, .input = other, .output = other}, 5s);
  EXPECT_EQ(group.parts(0).running.earliest_deadline(), fast->request.deadline);
}

}  // namespace
}  // namespace tutti
