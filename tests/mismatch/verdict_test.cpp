// verdict_test.cpp: the draw reaches everything it should, and the judge sees what is wrong.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "verdict.hpp"

namespace tutti::mismatch {
namespace {

using contract::Case;
using Kind = Ending::Kind;

Program two_ranks(std::vector<Case> first, std::vector<Case> second, bool closes) {
  Program program{.size = 2, .groups = {{0, 1}}, .closes = closes};
  program.calls.resize(2);
  for (const Case& what : first) program.calls[0].push_back({.group = 0, .what = what});
  for (const Case& what : second) program.calls[1].push_back({.group = 0, .what = what});
  return program;
}

Endings ended(Kind first, Kind second, const std::string& text = "why") {
  Endings endings;
  for (const Kind kind : {first, second})
    endings.ranks.push_back({.groups = {{.error = {.kind = kind, .text = text}}}});
  return endings;
}

std::string rule_of(const Program& program, const Endings& endings, const std::string& log = "") {
  const auto violations = judge(program, endings, log);
  return violations.empty() ? "" : violations[0].rule;
}

const Case sum{.verb = Verb::all_reduce, .length = 10};
const Case maximum{.verb = Verb::all_reduce, .op = Op::max, .length = 10};

TEST(Draw, GivesTheSameProgramForTheSameSeed) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) EXPECT_EQ(describe(draw_program(seed)), describe(draw_program(seed)));
}

TEST(Draw, ReachesEveryVerbStyleAndKindOfMutation) {
  std::set<Verb> verbs;
  std::set<Style> styles;
  std::size_t most_works = 0, agreeing = 0, differing = 0, prefixes = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const Program program = draw_program(seed);
    styles.insert(program.style);
    for (const ProgramCall& call : program.calls[0]) verbs.insert(call.what.verb);
    most_works = std::max(most_works, static_cast<std::size_t>(program.works_max));
    bool differs = false;
    for (int group = 0; group < static_cast<int>(program.groups.size()); ++group) {
      if (const auto difference = first_difference(program, group)) {
        differs = true;
        prefixes += difference->missing ? 1 : 0;
      }
    }
    ++(differs ? differing : agreeing);
  }
  EXPECT_EQ(verbs.size(), static_cast<std::size_t>(Verb::send));
  EXPECT_EQ(styles.size(), 3u);
  EXPECT_GT(most_works, 500u);
  EXPECT_GT(agreeing, 300u);
  EXPECT_GT(differing, 1000u);
  EXPECT_GT(prefixes, 5u);
}

TEST(Judge, AcceptsRightEndings) {
  EXPECT_EQ(rule_of(two_ranks({sum}, {sum}, true), ended(Kind::fine, Kind::fine)), "");
  EXPECT_EQ(rule_of(two_ranks({sum}, {maximum}, true), ended(Kind::mismatch, Kind::mismatch)), "");
  EXPECT_EQ(rule_of(two_ranks({sum}, {maximum}, false), ended(Kind::mismatch, Kind::fine)), "");
  EXPECT_EQ(rule_of(two_ranks({sum}, {}, false), ended(Kind::peer_lost, Kind::fine)), "");
  EXPECT_EQ(rule_of(two_ranks({sum}, {maximum}, false), ended(Kind::fine, Kind::fine), "same calls in the same order"),
            "");
}

TEST(Judge, SeesAnErrorThatNamesALaterCall) {
  Program program = two_ranks({sum, sum, sum}, {sum, maximum, maximum}, true);
  program.kind = contract::WorldKind::tcp;
  program.mutations = {"rank 1: call 1"};
  EXPECT_EQ(rule_of(program, ended(Kind::mismatch, Kind::mismatch, "rank 0 called all_reduce #2, but")), "");
  EXPECT_THAT(rule_of(program, ended(Kind::mismatch, Kind::mismatch, "rank 0 called all_reduce #3, but")),
              testing::HasSubstr("does not name the first call"));
}

TEST(Judge, SeesSilenceOtherErrorsAndFalseAlarms) {
  EXPECT_THAT(rule_of(two_ranks({sum}, {maximum}, true), ended(Kind::mismatch, Kind::fine)),
              testing::HasSubstr("silence"));
  EXPECT_THAT(rule_of(two_ranks({sum}, {maximum}, false), ended(Kind::fine, Kind::fine)),
              testing::HasSubstr("silence"));
  EXPECT_EQ(rule_of(two_ranks({sum}, {maximum}, true), ended(Kind::mismatch, Kind::timeout)),
            "Timeout instead of Mismatch");
  EXPECT_EQ(rule_of(two_ranks({sum}, {maximum}, false), ended(Kind::mismatch, Kind::peer_lost)),
            "PeerLost instead of Mismatch");
  EXPECT_EQ(rule_of(two_ranks({sum}, {sum}, true), ended(Kind::mismatch, Kind::fine)),
            "Mismatch although the ranks agree");
}

TEST(Judge, SeesWrongDataAndGroupsThatComeBackToLife) {
  const Program program = two_ranks({sum}, {maximum}, true);
  Endings endings = ended(Kind::mismatch, Kind::mismatch);
  endings.ranks[1].groups[0].wrong.push_back("element 3");
  EXPECT_EQ(rule_of(program, endings), "wrong data in a call that ended well");
  endings = ended(Kind::mismatch, Kind::mismatch);
  endings.ranks[0].groups[0].later = "call 7 ended well";
  EXPECT_EQ(rule_of(program, endings), "a broken group did not stay broken alike");
}

}  // namespace
}  // namespace tutti::mismatch
