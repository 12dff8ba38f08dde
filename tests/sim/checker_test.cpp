// checker_test.cpp: the checker detects every injected error.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check.hpp"
#include "run.hpp"
#include "truth.hpp"

namespace tutti::sim {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t seeds = 12;

// A scenario in which nothing goes wrong, but for what a test breaks.
Scenario without_trouble(std::uint64_t seed) {
  Scenario scenario = draw_scenario(seed);
  scenario.faults.clear();
  scenario.deviations.clear();
  return scenario;
}

std::vector<std::string> violations_with(Breakage breakage) {
  std::vector<std::string> all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Scenario scenario = without_trouble(seed);
    const auto violations = check(scenario, run(scenario, breakage));
    all.insert(all.end(), violations.begin(), violations.end());
  }
  return all;
}

TEST(Checker, NothingIsViolatedWhereNothingIsBroken) { EXPECT_THAT(violations_with(Breakage::none), IsEmpty()); }

// Those that once violated it: a rank blamed for what it had said long before (15, 7714, 8298, 8715), or that nobody had asked (7473), or that was
// farther than the one that spoke (1415), or than the one that most waited for (9071); a leaver accused of another
// call, whose group was broken (7019), or whose data was lost with its link (10043, 15516).
TEST(Checker, NothingIsViolatedBySeedsThatOnceDid) {
  for (const std::uint64_t seed : {15, 1415, 7019, 7473, 7714, 8298, 8583, 8715, 9071, 9748, 10043, 10259, 15516}) {
    const Scenario scenario = draw_scenario(seed);
    EXPECT_THAT(check(scenario, run(scenario, Breakage::none)), IsEmpty()) << "seed " << seed;
  }
}

TEST(Checker, AByteThatChangesOnItsWayIsNoticed) {
  EXPECT_THAT(violations_with(Breakage::flip), Contains(HasSubstr("instead of")));
}

TEST(Checker, AMessageThatNeverArrivesIsNoticed) {
  EXPECT_THAT(violations_with(Breakage::drop), Contains(HasSubstr("timed out, though nobody was late")));
}

TEST(Checker, AWriteAfterTheEndIsNoticed) {
  EXPECT_THAT(violations_with(Breakage::late), Contains(HasSubstr("its arrays changed after it had ended")));
}

TEST(Checker, ABlamelessRankThatIsGivenUpIsNoticed) {
  EXPECT_THAT(violations_with(Breakage::accuse), Contains(HasSubstr("is blamed, which did nothing wrong")));
}

TEST(Checker, ARankThatNoLongerListensIsNoticed) {
  EXPECT_THAT(violations_with(Breakage::deaf),
              Contains(AnyOf(HasSubstr("which did nothing wrong"), HasSubstr("though nobody was late"))));
}

// What a history may be turned into, and what the checker says to that.
std::vector<std::string> after(const std::function<void(History&)>& change) {
  const Scenario scenario = without_trouble(3);
  History history = run(scenario);
  change(history);
  return check(scenario, history);
}

TEST(Checker, ACallThatEndsTwiceOrNeverOrTooLateIsNoticed) {
  EXPECT_THAT(after([](History&) {}), IsEmpty());
  EXPECT_THAT(after([](History& h) { h.calls.front().endings = 2; }), Contains(HasSubstr("ended 2 times")));
  EXPECT_THAT(after([](History& h) { h.calls.front().endings = 0; }), Contains(HasSubstr("never ended")));
  EXPECT_THAT(after([](History& h) { h.calls.front().ended += std::chrono::hours(1); }),
              Contains(HasSubstr("the grace were over")));
  EXPECT_THAT(after([](History& h) { h.complete = false; }), Contains(HasSubstr("not all ranks came to an end")));
}

TEST(Checker, MembersThatTellDifferentStoriesAreNoticed) {
  const auto break_with = [](Record& record, std::string cause) {
    record.outcome = Outcome::lost;
    record.group_broken = true;
    record.cause = std::move(cause);
  };
  const auto violations = after([&](History& h) {
    break_with(h.calls.front(), "rank 1 is lost");
    const auto other = std::ranges::find_if(
        h.calls, [&](const Record& r) { return r.rank != h.calls.front().rank && r.group == h.calls.front().group; });
    break_with(*other, "rank 0 is lost");
  });
  EXPECT_THAT(violations, Contains(HasSubstr("broke for different reasons")));
}

TEST(Checker, ErrorsThatNobodyCausedAreNoticed) {
  for (const Outcome outcome :
       {Outcome::mismatch, Outcome::aborted, Outcome::refused, Outcome::timeout, Outcome::other}) {
    EXPECT_FALSE(after([&](History& h) { h.calls.front().outcome = outcome; }).empty()) << name_of(outcome);
  }
}

TEST(Truth, ATimeoutsTextTellsWhoIsNamed) {
  const TimeoutText text = parse_timeout(
      "all_reduce #41 (float32 × 7, sum) (ring over simulated) timed out after 1 s on rank 3 at step 2 of 8, "
      "waiting for rank 4 (host node0), which has not entered the call (its next is #40) and waits in recv (float32 × "
      "1, "
      "tag 0) from rank 5 in the world; ranks 1, 6-8 and 12, each of which does not answer");
  EXPECT_EQ(text.reporter, 3);
  EXPECT_EQ(text.sequence, 41u);
  EXPECT_THAT(text.named, testing::ElementsAre(4, 1, 6, 7, 8, 12));
  EXPECT_FALSE(text.is_message);
}

TEST(Replay, TheSameSeedGivesTheSameHistory) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    const History first = run(scenario), second = run(scenario);
    EXPECT_EQ(first.trace, second.trace) << "seed " << seed;
    EXPECT_EQ(first.steps, second.steps) << "seed " << seed;
    ASSERT_EQ(first.calls.size(), second.calls.size()) << "seed " << seed;
    for (std::size_t i = 0; i < first.calls.size(); ++i) {
      EXPECT_EQ(first.calls[i].text, second.calls[i].text);
      EXPECT_EQ(first.calls[i].ended, second.calls[i].ended);
    }
  }
}

}  // namespace
}  // namespace tutti::sim
