// waiting_test.cpp: spinning, yielding and sleeping, with a clock of the test's own.
// SPDX-License-Identifier: Apache-2.0
#include "group/waiting.hpp"

#include <gtest/gtest.h>

namespace tutti::waiting {
namespace {

class TestClock final : public Clock {
 public:
  explicit TestClock(Duration step) : step_(step) {}
  [[nodiscard]] TimePoint now() const override { return now_ += step_; }

 private:
  Duration step_;
  mutable TimePoint now_{std::chrono::hours(1)};
};

struct Work {
  int polls_needed = 0;
  int polls = 0;
  bool poll() { return ++polls >= polls_needed; }
};

struct Hook final : BlockingHook {
  void before_blocking() override { ++told; }
  int told = 0;
};

TEST(Waiting, WorkThatIsOverSoonIsPolledWithoutYieldingTheCore) {
  const TestClock clock(1ms);
  Hook hook;
  Work work{.polls_needed = polls_before_yield};
  EXPECT_TRUE(poll_within_budget(work, {.clock = clock, .hook = &hook}));
  EXPECT_EQ(work.polls, polls_before_yield);
  EXPECT_EQ(hook.told, 0);
}

TEST(Waiting, TheHookIsToldOnceBeforeTheCoreIsYielded) {
  const TestClock clock(1us);
  Hook hook;
  Work work{.polls_needed = 500};
  EXPECT_TRUE(poll_within_budget(work, {.clock = clock, .hook = &hook}));
  EXPECT_EQ(hook.told, 1);
}

TEST(Waiting, TheBudgetEndsByTheClockOrByTheNumberOfPolls) {
  Work slow{.polls_needed = 1'000'000}, endless{.polls_needed = 1'000'000};
  const TestClock steps(1ms), stands_still(0ms);
  EXPECT_FALSE(poll_within_budget(slow, {.clock = steps}));
  EXPECT_LT(slow.polls, 200);
  EXPECT_FALSE(poll_within_budget(endless, {.clock = stands_still}));
  EXPECT_EQ(endless.polls, polls_with_a_core_each);
}

TEST(Waiting, WithMoreRanksThanCoresEveryPollYields) {
  const TestClock clock(1us);
  Hook hook;
  Work work{.polls_needed = 2};
  EXPECT_TRUE(poll_within_budget(work, {.clock = clock, .oversubscribed = true, .hook = &hook}));
  EXPECT_EQ(hook.told, 1);
}

TEST(Waiting, IdleRoundsSpinThenYieldThenSleep) {
  const Surroundings remote{}, local{.local_peers = true}, oversubscribed{.oversubscribed = true, .local_peers = true};
  EXPECT_EQ(step_after(1, remote), Step::spin);
  EXPECT_EQ(step_after(spin_rounds + 1, remote), Step::yield);
  EXPECT_EQ(step_after(spin_rounds + yield_rounds + 1, remote), Step::sleep);
  EXPECT_EQ(step_after(spin_rounds + yield_rounds + 1, local), Step::yield);
  EXPECT_EQ(step_after(spin_rounds + yield_rounds_of_local_peers + 1, local), Step::sleep);
  EXPECT_EQ(step_after(1, oversubscribed), Step::yield);
  EXPECT_EQ(step_after(yield_rounds_oversubscribed + 1, oversubscribed), Step::sleep);
}

}  // namespace
}  // namespace tutti::waiting
