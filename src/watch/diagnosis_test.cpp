// diagnosis_test.cpp: what is found in the records of made-up jobs.
// SPDX-License-Identifier: Apache-2.0
#include "watch/diagnosis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/metrics.hpp"
#include "watch/perfetto.hpp"
#include "watch/report_data.hpp"
#include "watch/report_page.hpp"

namespace tutti::watch {
namespace {

using record::CallRecord;
using record::State;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t ms = 1'000'000;

RankView rank_of(int rank, int size) {
  RankView view{.seen = Seen::running};
  view.snapshot = {.job = "made-up",
                   .host = "a",
                   .rank = rank,
                   .size = size,
                   .process = 100 + rank,
                   .begin_ns = 0,
                   .read_ns = 5000 * ms};
  view.snapshot.life = record::Life::joined;
  view.snapshot.groups.push_back({.id = 77, .size = size, .rank = rank, .members = "world"});
  return view;
}

CallRecord& call(RankView& rank, std::uint64_t sequence, std::int64_t from, std::int64_t to) {
  auto& calls = rank.snapshot.calls;
  calls.push_back({.number = calls.size() + 1,
                   .sequence = sequence,
                   .verb = Verb::all_reduce,
                   .state = to < 0 ? State::under_way : State::ended,
                   .started_ns = from,
                   .ended_ns = to,
                   .bytes = 4096,
                   .flags = record::CallShape::reduces,
                   .site = "train.py:41"});
  rank.snapshot.written = calls.size();
  return calls.back();
}

std::vector<RankView> four_ranks_that_called(std::uint64_t times, std::int64_t late_of_2 = 0) {
  std::vector<RankView> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.push_back(rank_of(r, 4));
    for (std::uint64_t i = 0; i < times; ++i) {
      const auto begin = static_cast<std::int64_t>(i) * 20 * ms;
      const std::int64_t late = r == 2 ? late_of_2 : r * 1000;
      call(ranks.back(), i, begin + late, begin + late_of_2 + ms);
    }
  }
  return ranks;
}

TEST(Diagnosis, NothingIsTheMatterWithAJobThatRuns) {
  const Timeline timeline(four_ranks_that_called(20));
  EXPECT_TRUE(diagnose(timeline).empty());
  EXPECT_THAT(to_page(timeline, report_of(timeline)), HasSubstr("Nothing is the matter"));
}

TEST(Diagnosis, ARankThatIsNotInTheCallIsMissingAndItsLineIsNamed) {
  auto ranks = four_ranks_that_called(3);
  for (int r : {0, 1, 3}) call(ranks[static_cast<std::size_t>(r)], 3, 100 * ms, -1);
  ranks[2].snapshot.stack = "data.py:88 in load\ntrain.py:12 in <module>";
  const auto findings = diagnose(Timeline(ranks));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Finding::Kind::missing);
  EXPECT_THAT(findings[0].ranks, ElementsAre(2));
  EXPECT_THAT(findings[0].text, AllOf(HasSubstr("Ranks 0, 1 and 3 wait in all_reduce #3"), HasSubstr("at train.py:41"),
                                      HasSubstr("Rank 2 is missing: its program is at data.py:88 in load")));
}

TEST(Diagnosis, ADifferentCallUnderTheSameNumberIsAMismatch) {
  auto ranks = four_ranks_that_called(3);
  for (std::size_t r = 0; r < 4; ++r) call(ranks[r], 3, 100 * ms, -1);
  ranks[1].snapshot.calls.back().verb = Verb::barrier;
  ranks[1].snapshot.calls.back().site = "eval.py:7";
  const auto findings = diagnose(Timeline(ranks));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Finding::Kind::mismatch);
  EXPECT_THAT(findings[0].text,
              AllOf(HasSubstr("rank 0 made all_reduce #3"), HasSubstr("rank 1 made barrier #3 at eval.py:7")));
}

TEST(Diagnosis, ARankThatHasEndedIsNamedWithItsLastCall) {
  auto ranks = four_ranks_that_called(3);
  ranks[3].seen = Seen::gone;
  const auto findings = diagnose(Timeline(ranks));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Finding::Kind::gone);
  EXPECT_THAT(findings[0].text, AllOf(HasSubstr("Rank 3 (process 103"), HasSubstr("all_reduce #2")));
}

TEST(Diagnosis, ARankThatIsAlwaysLastIsSlow) {
  const Timeline timeline(four_ranks_that_called(20, 8 * ms));
  const auto findings = diagnose(timeline);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Finding::Kind::slow);
  EXPECT_THAT(findings[0].ranks, ElementsAre(2));
}

TEST(Report, NamesWhatIsTheMatterAndEscapesWhatComesFromTheProgram) {
  auto ranks = four_ranks_that_called(20, 8 * ms);
  ranks[0].snapshot.calls[0].site = "</script><script>alert(1)</script>:1";
  ranks[0].snapshot.error = "<b>boom</b>";
  const Timeline timeline(ranks);
  const ReportData data = report_of(timeline);
  const std::string page = to_page(timeline, data);
  EXPECT_THAT(page, AllOf(HasSubstr("Rank 2 is slow"), HasSubstr("&lt;b&gt;boom"), Not(HasSubstr("<script>alert"))));
  ASSERT_EQ(data.traffic.size(), 4u);
  EXPECT_DOUBLE_EQ(data.traffic[0][1], 20 * 2 * 4096 / 4.0);
  ASSERT_EQ(data.sizes.size(), 1u);
  EXPECT_EQ(data.sizes[0].calls, 80u);
}

TEST(Perfetto, HasASliceForEachCallAndAnArrowForEachMessage) {
  std::vector<RankView> ranks = {rank_of(0, 2), rank_of(1, 2)};
  for (int r = 0; r < 2; ++r) {
    CallRecord& message = call(ranks[static_cast<std::size_t>(r)], 0, (1 + r) * ms, (3 + r) * ms);
    message.verb = r == 0 ? Verb::send : Verb::recv;
    message.peer = 1 - r;
    message.flags = 0;
  }
  const Timeline timeline(ranks);
  ASSERT_EQ(timeline.arrows().size(), 1u);
  EXPECT_EQ(timeline.arrows()[0].from, 0);
  const std::string json = to_perfetto(timeline);
  EXPECT_THAT(json, AllOf(HasSubstr("\"ph\":\"X\""), HasSubstr("\"ph\":\"s\""), HasSubstr("\"ph\":\"f\"")));
}

TEST(Metrics, ArePrometheusText) {
  RankView rank = rank_of(1, 2);
  rank.snapshot.host = "a \"host\"";
  rank.snapshot.groups[0].counts.push_back(
      {.verb = Verb::all_reduce, .calls = 3, .bytes = 24, .waited_ns = 1'500'000'000});
  const std::string text = to_prometheus(std::vector{rank.snapshot});
  EXPECT_THAT(text,
              AllOf(HasSubstr("# TYPE tutti_calls_total counter"),
                    HasSubstr("tutti_calls_total{job=\"made-up\",rank=\"1\",host=\"a \\\"host\\\"\",group=\"world\","
                              "verb=\"all_reduce\"} 3\n"),
                    HasSubstr("tutti_waiting_seconds_total"), HasSubstr("} 1.5\n")));
}

}  // namespace
}  // namespace tutti::watch
