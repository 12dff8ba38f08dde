// agreement_test.cpp: calls that differ are found whenever the difference shows.
// SPDX-License-Identifier: Apache-2.0
#include "group/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

#include "tests/support/simulated_group.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = TransportListener::Verdict;

Envelope envelope_of(const Signature& signature) { return {.group = SimulatedGroup::id, .signature = signature}; }

TEST(CallAgreement, what_arrives_before_its_call_is_compared_when_the_call_is_made) {
  SimulatedGroup group(2);
  CallAgreement& agreement = group.parts(0).agreement;
  EXPECT_TRUE(agreement.is_quiet());
  EXPECT_EQ(agreement.arrived(1, envelope_of({.sequence = 0, .verb = Verb::barrier})), Verdict::keep);
  EXPECT_FALSE(agreement.is_quiet());
  std::vector<float> data(4);
  const View array(data);
  const auto call = group.start(0, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s);
  EXPECT_TRUE(group.parts(0).running.is_stopped());
  group.run_for(1s);
  EXPECT_THAT(error_of(*call), HasSubstr("rank 0 called all_reduce #0"));
  EXPECT_THAT(error_of(*call), HasSubstr("but rank 1 called barrier #0"));
}

TEST(CallAgreement, messages_of_another_life_of_the_group_are_dropped) {
  SimulatedGroup group(2);
  Envelope envelope = envelope_of({.sequence = 0, .verb = Verb::barrier});
  envelope.epoch = 7;
  EXPECT_EQ(group.parts(0).agreement.arrived(1, envelope), Verdict::drop);
  EXPECT_TRUE(group.parts(0).agreement.is_quiet());
}

TEST(CallAgreement, an_earlier_difference_that_shows_in_a_later_call_is_named_by_the_peer) {
  SimulatedGroup group(2);
  std::vector<float> a(4), b(4);
  const View first(a), second(b);
  // Both take themselves for the root: both send and return, and nobody notices.
  const auto one = group.start(0, {.verb = Verb::broadcast, .input = first, .output = first, .root = 0}, 10s);
  const auto other = group.start(1, {.verb = Verb::broadcast, .input = second, .output = second, .root = 1}, 10s);
  group.run_for(1s);
  EXPECT_TRUE(group.parts(0).failure.is_broken() && group.parts(1).failure.is_broken());
  EXPECT_THAT([&] { group.parts(0).failure.check_usable(); }, testing::ThrowsMessage<Mismatch>(HasSubstr("root 1")));
}

TEST(CallAgreement, a_later_call_that_differs_too_leads_to_the_earlier_one) {
  SimulatedGroup group(2);
  std::vector<float> none, some(4);
  std::vector<double> others;
  const View floats(none), doubles(others), data(some), nothing{};
  const std::vector calls{
      group.start(0, {.verb = Verb::all_reduce, .input = floats, .output = floats}, 10s),  // no elements: nobody sends
      group.start(1, {.verb = Verb::all_reduce, .input = doubles, .output = doubles}, 10s),
      group.start(0, {.verb = Verb::all_reduce, .input = data, .output = data}, 10s),
      group.start(1, {.verb = Verb::barrier, .input = nothing, .output = nothing}, 10s),
  };
  group.run_for(1s);
  EXPECT_TRUE(group.parts(0).failure.is_broken() && group.parts(1).failure.is_broken());
  for (const int rank : {0, 1}) {
    EXPECT_THAT([&] { group.parts(rank).failure.check_usable(); },
                testing::ThrowsMessage<Mismatch>(
                    testing::AllOf(HasSubstr("all_reduce #0 (float32"), HasSubstr("all_reduce #0 (float64"))));
  }
}

TEST(CallAgreement, the_position_counts_the_calls_that_have_ended_where_a_rank_does_not_wait_for_them) {
  SimulatedGroup group(2);
  EXPECT_EQ(group.parts(0).agreement.position().calls, 0u);
  std::vector<float> data(4);
  const View array(data);
  const auto call = group.start(0, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s);
  EXPECT_EQ(group.parts(0).agreement.position().calls, 0u);
  const auto theirs = group.start(1, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s);
  group.run_for(1s);
  EXPECT_EQ(group.parts(0).agreement.position().calls, 1u);
}

TEST(CallAgreement, a_rank_that_leaves_without_the_call_is_named) {
  SimulatedGroup group(2);
  std::vector<float> data(4);
  const View array(data);
  const auto call = group.start(0, {.verb = Verb::all_reduce, .input = array, .output = array}, 10s);
  group.runtime(1).leave();
  group.run_for(1s);
  EXPECT_THAT(error_of(*call),
              HasSubstr("rank 1 (host node) left the job without taking part in the call all_reduce #0"));
}

}  // namespace
}  // namespace tutti
