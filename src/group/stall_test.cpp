// stall_test.cpp: whom a wait leads to.
// SPDX-License-Identifier: Apache-2.0
#include "group/stall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using State = StallAnswer::State;
using testing::ElementsAre;
using testing::HasSubstr;

const TimePoint start{1000s};
constexpr Duration stale = 2s;

StallAnswer waiting_for(std::vector<int> ranks) {
  return {.group = 1,
          .sequence = 7,
          .state = State::waiting,
          .next_sequence = 8,
          .step = 3,
          .step_count = 9,
          .waiting_for = std::move(ranks)};
}
StallAnswer in_state(State state) { return {.group = 1, .sequence = 7, .state = state, .next_sequence = 5}; }

std::vector<int> ends(const StallMap& map, std::vector<int> from) { return map.ends({0, from, 7}, start, stale); }

TEST(Stall, AChainLeadsToTheRankThatHasNotEntered) {
  StallMap map;
  map.note(1, waiting_for({2}), start);
  map.note(2, waiting_for({3}), start);
  map.note(3, in_state(State::not_there_yet), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(3));
  EXPECT_THAT(map.involved(std::vector{1}, 7), ElementsAre(1, 2, 3));
  EXPECT_THAT(map.describe(3, 7, start, stale), HasSubstr("has not entered the call (its next is #5)"));
}

TEST(Stall, WhereARankMadeItsCallIsToldAndForgottenWithTheCall) {
  StallAnswer answer = waiting_for({2});
  answer.site = std::string(600, 'x') + "train.py:41";
  const StallAnswer received = decode_answer(encode(answer));
  EXPECT_THAT(received.site, testing::EndsWith("xtrain.py:41"));
  EXPECT_EQ(decode_probe(encode(StallProbe{.group = 1, .site = "a.py:3"})).site, "a.py:3");
  StallMap map;
  map.note(1, received, start);
  map.note_site(3, 7, "b.py:5");
  EXPECT_THAT(map.describe(1, 7, start, stale), HasSubstr("train.py:41"));
  EXPECT_EQ(map.site_of(3, 7), "b.py:5");
  EXPECT_EQ(map.site_of(3, 8), "");
  map.forget_before(8);
  EXPECT_EQ(map.site_of(3, 7), "");
}

TEST(Stall, ARankIsKnownToHaveLivedWhenItWasAskedAQuestionThatItAnswered) {
  StallMap map;
  map.note(1, waiting_for({2}), start, 4);
  EXPECT_TRUE(map.answered_question(1, 7, 4));
  EXPECT_FALSE(map.answered_question(1, 7, 5));
  EXPECT_FALSE(map.answered_question(1, 8, 4));
  map.note(1, waiting_for({2}), start, 9);
  map.note(1, waiting_for({2}), start);  // by itself
  EXPECT_TRUE(map.answered_question(1, 7, 5));
}

TEST(Stall, ASilentRankIsTheEndOfItsChain) {
  StallMap map;
  map.note(1, waiting_for({2}), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
  EXPECT_EQ(map.describe(2, 7, start, stale), "does not answer");
}

TEST(Stall, AnAnswerThatIsTooOldCountsAsNone) {
  StallMap map;
  map.note(1, waiting_for({2}), start - 10s);
  map.note(2, waiting_for({1}), start);
  EXPECT_THAT(ends(map, {2}), ElementsAre(1));
  EXPECT_THAT(map.describe(1, 7, start, stale), HasSubstr("10 s ago"));
}

TEST(Stall, TheOneWhoAsksIsNeverTheEnd) {
  StallMap map;
  map.note(1, waiting_for({0, 2}), start);
  map.note(2, in_state(State::not_there_yet), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
}

TEST(Stall, ARankThatIsThroughIsNotWaitedForIfAnyoneElseIs) {
  StallMap map;
  map.note(1, in_state(State::past_it), start);
  map.note(2, in_state(State::not_there_yet), start);
  EXPECT_THAT(ends(map, {1, 2}), ElementsAre(2));
  EXPECT_THAT(ends(map, {1}), ElementsAre(1));
}

TEST(Stall, ACycleIsNamedByItsLowestRank) {
  StallMap map;
  map.note(1, waiting_for({2}), start);
  map.note(2, waiting_for({1}), start);
  EXPECT_THAT(ends(map, {2}), ElementsAre(1));
}

TEST(Stall, OfACycleTheRankThatIsLeastFarIsNamed) {
  StallMap map;
  StallAnswer far = waiting_for({2}), behind = waiting_for({1});
  far.step = 8;
  behind.step = 2;
  map.note(1, far, start);
  map.note(2, behind, start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
}

TEST(Stall, IfTheOneWhoAsksIsLeastFarItNamesWhomItWaitsFor) {
  StallMap map;
  StallAnswer sent = waiting_for({2}), waits = waiting_for({0});
  sent.step = 8;
  waits.step = 6;
  map.note(1, sent, start);
  map.note(2, waits, start);
  const std::vector from{1};
  const auto ends_from_step = [&](int step) {
    return map.ends({.self = 0, .waiting_for = from, .sequence = 7, .step = step, .step_count = 9}, start, stale);
  };
  EXPECT_THAT(ends_from_step(5), ElementsAre(1));
  EXPECT_THAT(ends_from_step(6), ElementsAre(2));
  EXPECT_THAT(ends_from_step(7), ElementsAre(2));
}

TEST(Stall, OfACycleTheRankThatAllOthersWaitForAloneIsNamed) {
  StallMap map;
  StallAnswer slow = waiting_for({1, 2, 3});
  slow.step = 8;
  for (const int rank : {1, 2, 3}) map.note(rank, waiting_for({4}), start);
  map.note(4, slow, start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(4));
}

TEST(Stall, OfRanksThatAreEquallyFarTheOneThatMostWaitForIsNamed) {
  StallMap map;
  map.note(1, waiting_for({3}), start);
  map.note(2, waiting_for({1, 3}), start);
  map.note(3, waiting_for({1, 2}), start);
  map.note(4, waiting_for({3}), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(1));  // as many as for 3, within the cycle
  map.note(1, waiting_for({2, 3}), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(1));
  map.note(3, waiting_for({2}), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
}

TEST(Stall, ARankThatNobodyHasAskedIsNotBlamedIfAnyoneElseIs) {
  StallMap map;
  map.note_asked(2, 7, start);
  EXPECT_THAT(ends(map, {1, 2}), ElementsAre(2));
  EXPECT_THAT(ends(map, {1}), ElementsAre(1));
}

TEST(Stall, OfACycleARankThatExchangesSizesIsLessFarThanOneThatKnowsThem) {
  StallMap map;
  StallAnswer knows_sizes = waiting_for({2}), learns_sizes = waiting_for({1});
  knows_sizes.stage = 1;
  learns_sizes.step = 8;
  map.note(1, knows_sizes, start);
  map.note(2, learns_sizes, start);
  EXPECT_THAT(ends(map, {1, 2}), ElementsAre(2));
}

TEST(Stall, ARankThatLeadsToACycleIsNotPartOfIt) {
  StallMap map;
  map.note(1, waiting_for({2}), start);
  map.note(2, waiting_for({3}), start);
  map.note(3, waiting_for({2}), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
}

TEST(Stall, WhoeverWaitsForARankThatIsThroughHoldsUpTheOthers) {
  StallMap map;
  map.note(1, waiting_for({2}), start);
  map.note(2, waiting_for({3}), start);
  map.note(3, in_state(State::past_it), start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
}

TEST(Stall, OfRanksThatAreEquallyFarTheOneThatTakesLongestToAnswerHoldsUpTheOthers) {
  StallMap map;
  for (const int rank : {1, 2, 3}) map.note_asked(rank, 7, start - 1s);
  map.note(1, waiting_for({2, 3}), start - 990ms);
  map.note(2, waiting_for({1, 3}), start - 990ms);
  map.note_asked(3, 7, start - 800ms);  // again, before it answers
  map.note(3, waiting_for({1, 2}), start - 600ms);
  map.note_asked(3, 7, start - 500ms);
  map.note(3, waiting_for({1, 2}), start - 500ms);
  EXPECT_THAT(ends(map, {1, 2, 3}), ElementsAre(3));
}

TEST(Stall, AnswersAboutOneCallDoNotHideThoseAboutAnother) {
  StallMap map;
  StallAnswer other = waiting_for({5});
  other.sequence = 8;
  map.note(1, waiting_for({2}), start);
  map.note(1, other, start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(2));
  EXPECT_TRUE(map.answered(1, 7, start - 1s));
  EXPECT_FALSE(map.answered(1, 7, start));
  map.forget_before(8);
  EXPECT_FALSE(map.answered(1, 7, start - 1s));
  EXPECT_TRUE(map.answered(1, 8, start - 1s));
}

TEST(Stall, AnswersOfOtherCallsLeadNowhere) {
  StallMap map;
  StallAnswer other = waiting_for({5});
  other.sequence = 6;
  map.note(1, other, start);
  EXPECT_THAT(ends(map, {1}), ElementsAre(1));
}

TEST(Stall, MessagesSurviveTheWire) {
  const StallProbe probe{
      .group = 9,
      .epoch = 2,
      .signature = {.sequence = 3, .verb = Verb::scan, .dtype = DType::int8, .root = -1, .count = 5}};
  const StallProbe read = decode_probe(encode(probe));
  EXPECT_EQ(read.group, 9u);
  EXPECT_EQ(read.epoch, 2u);
  EXPECT_EQ(read.signature, probe.signature);
  const StallProbe question{.about = StallProbe::About::earlier_calls,
                            .group = 9,
                            .details = " of shape (3, 4)",
                            .digest = {.calls = 4, .sum = 5, .refused = 6, .is_known = false},
                            .calls = {probe.signature}};
  const StallProbe asked = decode_probe(encode(question));
  EXPECT_EQ(asked.about, question.about);
  EXPECT_EQ(asked.details, question.details);
  EXPECT_EQ(asked.digest, question.digest);
  EXPECT_EQ(asked.calls, question.calls);
  const StallAnswer answer = decode_answer(encode(waiting_for({4, 2})));
  EXPECT_THAT(answer.waiting_for, ElementsAre(4, 2));
  EXPECT_EQ(answer.step_count, 9);
}

TEST(Stall, MalformedMessagesAreRefused) {
  auto bytes = encode(StallProbe{});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW((void)decode_probe(std::span(bytes).first(length)), MalformedMessage);
  }
  bytes[21] = std::byte{200};  // the verb
  EXPECT_THROW((void)decode_probe(bytes), MalformedMessage);
  auto answer = encode(waiting_for({1}));
  answer[16] = std::byte{17};  // the state
  EXPECT_THROW((void)decode_answer(answer), MalformedMessage);
}

TEST(NameRanks, JoinsNeighboursAndStopsAfterAFew) {
  EXPECT_EQ(name_ranks(std::vector{3}), "rank 3");
  EXPECT_EQ(name_ranks(std::vector{0, 3, 4, 5, 12}), "ranks 0, 3-5 and 12");
  std::vector<int> even;
  for (int rank = 0; rank < 256; rank += 2) even.push_back(rank);
  EXPECT_EQ(name_ranks(even), "ranks 0, 2, 4, 6, 8, 10 and 122 more");
}

TEST(StallMap, says_of_256_ranks_in_one_line_who_is_late) {
  StallMap map;
  const TimePoint now{1s};
  std::vector<int> late;
  for (int rank = 0; rank < 256; ++rank) {
    late.push_back(rank);
    if (rank == 40) continue;  // it does not answer
    map.note(rank, {.sequence = 7, .state = StallAnswer::State::not_there_yet, .next_sequence = 7}, now);
  }
  const auto name = [](int rank) { return "rank " + std::to_string(rank) + " (host a)"; };
  EXPECT_EQ(map.describe_all(late, 7, {now, 2s}, name),
            "ranks 0-39 and 41-255, each of which has not entered the call (its next is #7) and is in no call; "
            "rank 40 (host a), which does not answer");
}

TEST(StallMap, many_different_states_do_not_make_a_long_line) {
  StallMap map;
  const TimePoint now{1s};
  std::vector<int> late;
  for (int rank = 0; rank < 256; ++rank) {
    late.push_back(rank);
    map.note(rank, {.sequence = 7, .state = StallAnswer::State::waiting, .step = rank, .step_count = 300}, now);
  }
  const std::string text = map.describe_all(late, 7, {now, 2s}, [](int rank) { return std::to_string(rank); });
  EXPECT_LT(text.size(), 300u);
  EXPECT_NE(text.find("and 253 more ranks"), std::string::npos) << text;
}

TEST(StallMap, knows_who_waits_as_well_only_after_asking) {
  using Standing = StallMap::Standing;
  StallMap map;
  const TimePoint now{10s};
  EXPECT_EQ(map.standing(0, 7, now, 2s), Standing::unknown);
  map.note_question(0, 7, now);
  EXPECT_EQ(map.standing(0, 7, now + 1s, 2s), Standing::asked);
  EXPECT_EQ(map.standing(0, 7, now + 3s, 2s), Standing::does_not_wait);  // it had its time to answer
  map.note(0, {.sequence = 7, .state = StallAnswer::State::waiting}, now + 1s);
  EXPECT_EQ(map.standing(0, 7, now + 2s, 2s), Standing::waits);
  EXPECT_EQ(map.standing(0, 7, now + 9s, 2s), Standing::unknown);  // that was long ago
  map.forget_before(8);
  EXPECT_EQ(map.standing(0, 7, now + 2s, 2s), Standing::unknown);
}

}  // namespace
}  // namespace tutti
