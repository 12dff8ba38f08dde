// refusal_test.cpp: a bad argument on one rank: it raises there, its peers raise, and the group stays usable.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "outcomes.hpp"

namespace tutti::contract {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = Outcome::Kind;

class Refusals : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Refusals, testing::Values(2, 3, 4));

TEST_P(Refusals, OfOneRankReachItsPeersAndLeaveTheGroupUsable) {
  const auto world = make_thread_world({.size = GetParam(), .timeout = std::chrono::seconds(20)});
  world->run([](Group& g) {
    std::vector<float> x(10, 1.0f);
    const Outcome outcome = outcome_of([&] { g.all_reduce(x, {.op = g.rank() == 1 ? Op::band : Op::sum}); });
    if (g.rank() == 1) {
      EXPECT_EQ(outcome.kind, Kind::invalid_argument);
      EXPECT_THAT(outcome.text, AllOf(HasSubstr("band"), HasSubstr("float32")));
    } else {
      EXPECT_EQ(outcome.kind, Kind::aborted) << outcome.text;
      EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1"), HasSubstr("band"), HasSubstr("usable")));
      EXPECT_LT(outcome.seconds, 2.0);
    }
    std::vector<float> y(10, 1.0f);
    g.all_reduce(y);
    EXPECT_EQ(y[9], static_cast<float>(g.size()));
  });
}

TEST_P(Refusals, OfAllRanksAtOnceLeaveTheGroupUsable) {
  const auto world = make_thread_world({.size = GetParam(), .timeout = std::chrono::seconds(20)});
  world->run([](Group& g) {
    std::vector<int> x(10, 1);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(outcome_of([&] { g.all_reduce(x, {.op = Op::mean}); }).kind, Kind::invalid_argument);
    }
    g.all_reduce(x);
    EXPECT_EQ(x[0], g.size());
  });
}

TEST_P(Refusals, DoNotDisturbARankThatWasAlreadyThrough) {
  const auto world = make_thread_world({.size = GetParam(), .timeout = std::chrono::seconds(20)});
  world->run([](Group& g) {
    std::vector<float> x(10, static_cast<float>(g.rank()));
    const bool refuses = g.rank() == g.size() - 1;
    const Outcome outcome = outcome_of([&] { g.broadcast(x, {.root = refuses ? 99 : 0}); });
    if (refuses) {
      EXPECT_EQ(outcome.kind, Kind::invalid_argument);
      EXPECT_THAT(outcome.text, HasSubstr("99"));
    }
    g.barrier();
    std::vector<float> y(3, 2.0f);
    g.all_reduce(y, {.op = Op::product});
    EXPECT_EQ(y[0], static_cast<float>(1 << g.size()));
  });
}

TEST_P(Refusals, InAHundredCallsInARowNeverConfuseTheNumbers) {
  const auto world = make_thread_world({.size = GetParam(), .timeout = std::chrono::seconds(60)});
  world->run([](Group& g) {
    for (int i = 0; i < 100; ++i) {
      std::vector<float> x(1000, 1.0f);
      const bool refuses = i % g.size() == g.rank() && i % 3 == 0;
      const Outcome outcome = outcome_of([&] { g.all_reduce(x, {.op = refuses ? Op::bxor : Op::sum}); });
      if (i % 3 == 0) {
        EXPECT_EQ(outcome.kind, refuses ? Kind::invalid_argument : Kind::aborted) << outcome.text;
      } else {
        EXPECT_EQ(outcome.kind, Kind::fine) << outcome.text;
        EXPECT_EQ(x[999], static_cast<float>(g.size()));
      }
    }
  });
}

}  // namespace
}  // namespace tutti::contract
