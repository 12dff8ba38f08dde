// verdicts_test.cpp: the rule, and who applies it when.
// SPDX-License-Identifier: Apache-2.0
#include "control/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::control {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr TimePoint start{1h};

Lost lost(const std::optional<Verdicts::Decision>& decision) { return std::get<Lost>(decision.value().verdict); }

TEST(Verdicts, wait_for_the_settle_window_and_are_the_lowest_rank_s_to_give) {
  Verdicts lowest(0, 4, {}), other(1, 4, {});
  for (Verdicts* verdicts : {&lowest, &other}) verdicts->suspect(start, 2, {.accused = 3, .reason = "gone"});
  EXPECT_FALSE(lowest.decide(start + 29ms));
  EXPECT_EQ(lowest.next_timer(start), start + 30ms);
  const auto decision = lowest.decide(start + 30ms);
  EXPECT_EQ(lost(decision).rank, 3);
  EXPECT_EQ(lost(decision).cause.text, "rank 3 is lost: gone (noticed by rank 2)");
  EXPECT_TRUE(decision->for_all);
  EXPECT_FALSE(other.decide(start + 4s));
  EXPECT_FALSE(other.decide(start + 5s).value().for_all);  // nobody decides: for itself
}

TEST(Verdicts, pass_over_an_accused_decider_that_is_not_heard_of) {
  Verdicts next(1, 4, {});
  next.suspect(start, 2, {.accused = 0, .reason = "gone"});
  EXPECT_FALSE(next.decide(start + 89ms));
  EXPECT_EQ(lost(next.decide(start + 90ms)).rank, 0);
  next.alive(start + 80ms, 0, 0s);
  EXPECT_FALSE(next.decide(start + 90ms));
  EXPECT_TRUE(next.decide(start + 170ms).value().for_all);
}

TEST(Verdicts, give_up_the_higher_end_of_a_link_whose_ends_both_live) {
  for (const auto& [accuser, accused] : {std::pair(1, 3), std::pair(3, 1)}) {
    Verdicts verdicts(0, 4, {});
    verdicts.suspect(start, accuser, {.accused = accused, .reason = "reset"});
    verdicts.alive(start + 1ms, accused, 0s);
    EXPECT_EQ(lost(verdicts.decide(start + 1s)).rank, 3);
    EXPECT_THAT(lost(verdicts.decide(start + 1s)).cause.text, HasSubstr("the link between ranks 1 and 3 is cut"));
    verdicts.remove(3);
    EXPECT_FALSE(verdicts.decide(start + 1h));
  }
}

TEST(Verdicts, do_not_take_what_a_rank_said_before_it_died_for_an_answer) {
  Verdicts survivor(2, 3, {});
  survivor.suspect(start, 0, {.accused = 1, .reason = "gone"});  // rank 0 accuses rank 1,
  survivor.remove(1);
  survivor.suspect(start + 2ms, 2, {.accused = 0, .reason = "gone"});  // and is gone itself
  EXPECT_EQ(lost(survivor.decide(start + 1s)).rank, 0);
}

TEST(Verdicts, are_told_by_the_one_whose_cause_it_is_if_the_decider_is_silent) {
  const Proposal proposal{7, 0, {.kind = Cause::Kind::timeout, .culprits = {0}, .sequence = 3, .text = "late"}};
  Verdicts origin(1, 4, {}), other(2, 4, {});
  for (Verdicts* verdicts : {&origin, &other}) verdicts->propose(start, 1, proposal);
  EXPECT_FALSE(origin.decide(start + 249ms));
  EXPECT_TRUE(origin.decide(start + 250ms).value().for_all);
  EXPECT_FALSE(other.decide(start + 250ms).value().for_all);
}

TEST(Verdicts, give_up_a_living_rank_that_several_accuse_or_that_was_stopped) {
  Verdicts several(0, 4, {});
  several.suspect(start, 2, {.accused = 1, .reason = "silent"});
  several.suspect(start, 3, {.accused = 1, .reason = "silent"});
  several.alive(start, 1, 0s);
  EXPECT_EQ(lost(several.decide(start + 30ms)).rank, 1);
  EXPECT_THAT(lost(several.decide(start + 30ms)).cause.text, HasSubstr("ranks 2, 3 cannot reach it"));

  Verdicts stopped(0, 4, {});
  stopped.suspect(start, 3, {.accused = 1, .reason = "silent"});
  stopped.alive(start, 1, 6s);
  EXPECT_EQ(lost(stopped.decide(start + 30ms)).rank, 1);
  EXPECT_THAT(lost(stopped.decide(start + 30ms)).cause.text, HasSubstr("it was stopped for 6.0 s"));
}

TEST(Verdicts, on_aborts_take_the_first_cause_in_order_and_wait_for_losses_that_are_open) {
  const auto broken = [](const auto& decision) { return std::get<Broken>(decision.value().verdict); };
  Verdicts verdicts(0, 4, {});
  verdicts.propose(start, 1, {7, 0, {.kind = Cause::Kind::timeout, .culprits = {2}}});
  verdicts.propose(start, 3, {7, 0, {.kind = Cause::Kind::mismatch, .culprits = {3}, .text = "three"}});
  verdicts.propose(start, 2, {7, 0, {.kind = Cause::Kind::mismatch, .culprits = {3}, .text = "two"}});
  EXPECT_TRUE(verdicts.proposed(7, 0));
  EXPECT_FALSE(verdicts.proposed(7, 1));
  EXPECT_EQ(broken(verdicts.decide(start + 30ms)).cause.text, "two");
  verdicts.suspect(start + 20ms, 1, {.accused = 2, .reason = "gone"});
  EXPECT_FALSE(verdicts.decide(start + 30ms));
  EXPECT_EQ(lost(verdicts.decide(start + 50ms)).rank, 2);
  verdicts.remove(2);
  EXPECT_EQ(broken(verdicts.decide(start + 50ms)).group, 7u);
  EXPECT_TRUE(verdicts.settle(7, 0));
  EXPECT_FALSE(verdicts.settle(7, 0));
  verdicts.propose(start, 1, {7, 0, {}});
  EXPECT_FALSE(verdicts.decide(start + 1h));
}

TEST(Verdicts, of_a_world_of_one_come_at_once) {
  Verdicts alone(0, 1, {});
  alone.propose(start, 0, {7, 0, {}});
  EXPECT_TRUE(alone.decide(start));
}

}  // namespace
}  // namespace tutti::control
