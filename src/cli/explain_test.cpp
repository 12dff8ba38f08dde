// explain_test.cpp: what is said about a choice, and the pictures of it.
// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.hpp"

#include <gmock/gmock.h>

#include <tutti/error.hpp>

#include "cli/picture.hpp"
#include "plan/catalog.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const Question& question) {
  try {
    explain(question, {});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "explained";
}

Timeline timeline_of(const Question& question) {
  return sim::rehearse(explain(question, {}).spec, static_cast<std::int64_t>(size_of(question.dtype)), {});
}

TEST(Explain, TheCheapestIsPickedAndTheReasonNamesTheNext) {
  const Explanation answer = explain({.ranks = 8, .bytes = 8}, {});
  EXPECT_EQ(answer.shown, answer.selected);
  EXPECT_EQ(answer.shown.algorithm, answer.candidates.front().choice.algorithm);
  EXPECT_THAT(answer.why, HasSubstr("cheapest of 5 by the cost model"));
  EXPECT_THAT(answer.why, HasSubstr("latency, so few rounds count most"));
  EXPECT_THAT(explain({.ranks = 8, .bytes = 64 << 20}, {}).why, HasSubstr("sending little counts most"));
  EXPECT_THAT(answer.absent, ElementsAre(Algorithm::hierarchical));
}

TEST(Explain, TheBackendThatServesTheCallIsNamed) {
  const auto served = [](Question question) { return explain(question, {}).served_by; };
  EXPECT_THAT(served({.ranks = 4}), HasSubstr("shm: all ranks share the memory of one host"));
  EXPECT_THAT(served({.ranks = 4, .node_of = {0, 0, 1, 1}}), HasSubstr("native, by the plan below, over 2 hosts"));
  EXPECT_THAT(served({.ranks = 4, .backend = "mpi"}), HasSubstr("mpi: MPI chooses the algorithm"));
  EXPECT_THAT(served({.ranks = 4, .backend = "ucx"}), HasSubstr("through UCX"));
  EXPECT_THAT(served({.ranks = 1}), HasSubstr("alone"));
  EXPECT_THAT(refusal({.backend = "pvm"}), HasSubstr("not a backend; there are auto, native, shm, ucx, mpi"));
}

TEST(Explain, ARowOfTheTableIsTheReasonWhereItDecides) {
  const Table table{
      .rows = {{.verb = Verb::all_reduce, .ranks_max = 16, .choice = {.algorithm = Algorithm::double_tree}}}};
  EXPECT_EQ(explain({.ranks = 8, .bytes = 8}, table).shown.algorithm, Algorithm::double_tree);
  EXPECT_THAT(explain({.ranks = 8, .bytes = 8}, table).why, HasSubstr("a row of TUTTI_TABLE says so"));
  EXPECT_THAT(explain({.ranks = 17, .bytes = 8}, table).why, HasSubstr("cost model"));
}

TEST(Explain, AnAlgorithmThatWasAskedForIsComparedWithTheSelectedOne) {
  const Explanation answer = explain({.ranks = 8, .bytes = 8, .algorithm = Algorithm::ring}, {});
  EXPECT_EQ(answer.shown.algorithm, Algorithm::ring);
  EXPECT_EQ(answer.spec.algorithm, Algorithm::ring);
  EXPECT_THAT(answer.why, HasSubstr("recursive_doubling would be selected"));
}

TEST(Explain, EveryVerbWithPlansOnAnyNumberOfRanks) {
  for (int i = 0; i < verb_count; ++i) {
    const auto verb = static_cast<Verb>(i);
    if (catalog(verb).empty()) continue;
    for (const int ranks : {1, 2, 3, 7, 8, 16}) {
      const Question question{
          .verb = verb, .ranks = ranks, .bytes = 1000, .node_of = parse_hosts(ranks > 2 ? "2" : "1", ranks)};
      const Explanation answer = explain(question, {});
      for (const Candidate& candidate : answer.candidates) {
        Question one = question;
        one.algorithm = candidate.choice.algorithm;
        const Timeline timeline = sim::rehearse(explain(one, {}).spec, 4, {});
        EXPECT_EQ(timeline.messages.empty(), ranks == 1) << name_of(verb);
        for (const Message& message : timeline.messages) {
          ASSERT_GT(message.end, message.begin) << "every message arrives";
          ASSERT_LE(message.end, timeline.seconds);
          ASSERT_GE(message.slot, 0);
        }
        EXPECT_THAT(draw_text(timeline, Style::plain()), HasSubstr(ranks == 1 ? "nothing is sent" : "all done"));
      }
    }
  }
}

TEST(Explain, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(refusal({.verb = Verb::send}), HasSubstr("single message"));
  EXPECT_THAT(refusal({.ranks = 0}), HasSubstr("at least one rank"));
  EXPECT_THAT(refusal({.verb = Verb::reduce, .ranks = 4, .root = 4}), HasSubstr("0 to 3"));
  EXPECT_THAT(refusal({.algorithm = Algorithm::bruck}), HasSubstr("does not serve all_reduce; here serve"));
  EXPECT_THAT(refusal({.algorithm = Algorithm::hierarchical}), HasSubstr("--hosts"));
}

TEST(Hosts, AreANumberOrRanksPerHost) {
  EXPECT_THAT(parse_hosts("2", 5), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(parse_hosts("1,3", 4), ElementsAre(0, 1, 1, 1));
  EXPECT_TRUE(parse_hosts("1", 4).empty());
  for (const char* bad : {"", "0", "5", "2,3", "a", "2,", "-1", "2,2,x"}) {
    EXPECT_THROW(parse_hosts(bad, 4), InvalidArgument) << bad;
  }
}

TEST(Picture, ExchangesShareALineWhereTheyDoNotCross) {
  const Question question{.ranks = 4, .bytes = 16, .algorithm = Algorithm::recursive_doubling};
  EXPECT_EQ(draw_text(timeline_of(question), Style::plain()),
            "    time  0     1     2     3\n"
            "       0  │◀───▶│     │◀───▶│   4 × 16 B\n"
            "   13 µs  │◀────┼────▶│     │   4 × 16 B\n"
            "          │     │◀────┼────▶│\n"
            "   26 µs  all done\n");
}

TEST(Picture, ARingClosesOnALineOfItsOwn) {
  const Question question{.verb = Verb::all_gather, .ranks = 3, .bytes = 12, .algorithm = Algorithm::ring};
  EXPECT_EQ(draw_text(timeline_of(question), Style::plain()),
            "    time  0     1     2\n"
            "       0  ├────▶├────▶│   3 × 4 B\n"
            "          │◀────┼─────┤\n"
            "   13 µs  ├────▶├────▶│   3 × 4 B\n"
            "          │◀────┼─────┤\n"
            "   26 µs  all done\n");
}

TEST(Picture, WhatDoesNotFitIsCountedAndTooManyRanksAreToldSo) {
  const Question question{.ranks = 16, .bytes = 64, .algorithm = Algorithm::ring};
  EXPECT_THAT(draw_text(timeline_of(question), Style::plain(), {.lines_max = 10}), HasSubstr("⋮ 400 more messages"));
  EXPECT_THAT(draw_text({.ranks = 17}, Style::plain()), HasSubstr("17 ranks are too many for a terminal"));
}

TEST(Svg, HasEveryMessageItsTitleAndALegend) {
  const Question question{.ranks = 4, .bytes = 1 << 10, .node_of = {0, 0, 1, 1}};
  const Timeline timeline = timeline_of(question);
  const std::string svg = draw_svg(timeline, {.title = "all_reduce", .subtitle = "by this"});
  std::size_t arrows = 0;
  for (std::size_t at = svg.find("marker-end"); at != std::string::npos; at = svg.find("marker-end", at + 1)) ++arrows;
  EXPECT_EQ(arrows, timeline.messages.size());
  for (const char* part : {"<svg ", ">all_reduce<", ">by this<", ">host 1<", ">to be reduced<", ">kept as it is<",
                           ">between hosts<", ">reducing<", "</svg>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THROW(draw_svg({.ranks = 65}, {}), InvalidArgument);
}

}  // namespace
}  // namespace tutti::cli
