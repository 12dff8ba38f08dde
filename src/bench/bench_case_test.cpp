// bench_case_test.cpp: cases for all sizes, and the lines between coordinator and ranks.
// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_case.hpp"

#include <gmock/gmock.h>

#include <tutti/error.hpp>

namespace tutti::bench {
namespace {

TEST(BenchCase, TurnsSurviveTheirText) {
  for (const BenchVerb& verb : all_verbs()) {
    const Turn turn{.bench_case = make_bench_case({.verb = verb.verb,
                                                   .dtype = DType::bfloat16,
                                                   .in_place = true,
                                                   .exchange = verb.exchange,
                                                   .is_stale = true},
                                                  1 << 20, 4),
                    .calls = 17,
                    .batches = 3};
    EXPECT_EQ(turn_from_line(to_line(turn)), turn) << to_line(turn);
  }
  EXPECT_EQ(to_line(Turn{.bench_case = {.count = 1024, .in_place = true}, .calls = 64, .batches = 20}),
            "all_reduce float32 1024 in_place heap fresh 64 20");
}

TEST(BenchCase, AnswersSurviveTheirText) {
  const Answer times{.us_per_call = {0.125, 2.5, 1e6}, .wrong = 3};
  EXPECT_EQ(answer_from_line(to_line(times)), times);
  EXPECT_EQ(answer_from_line(to_line(Answer{.trouble = "no\nluck"})), Answer{.trouble = "no luck"});
}

TEST(BenchCase, LinesThatMeanNothingAreRefused) {
  for (const char* line :
       {"", "all_reduce", "all_reduce float32 x in_place heap fresh 1 1", "nothing float32 1 in_place heap fresh 1 1",
        "all_reduce float32 -1 in_place heap fresh 1 1", "all_reduce float32 1 in_place stack fresh 1 1"}) {
    EXPECT_THROW(turn_from_line(line), InvalidArgument) << line;
  }
  for (const char* line : {"", "ok", "ok 1", "ok 1 x", "fine 0 1.0"}) {
    EXPECT_THROW(answer_from_line(line), InvalidArgument) << line;
  }
}

TEST(BenchCase, ArraysThatAreCutHaveAnElementForEachRank) {
  EXPECT_EQ(make_bench_case({.verb = Verb::all_gather}, 8, 8).bytes(), 32);
  EXPECT_EQ(make_bench_case({.verb = Verb::all_to_all}, 1000, 3).count, 249);
  EXPECT_EQ(make_bench_case({.verb = Verb::all_reduce}, 8, 8).bytes(), 8);
  EXPECT_EQ(make_bench_case({.verb = Verb::all_reduce}, 1, 8).count, 1);
  EXPECT_EQ(make_bench_case({.verb = Verb::barrier}, 1 << 20, 2).count, 0);
  EXPECT_EQ(make_bench_case({.verb = Verb::send, .exchange = Exchange::window}, 8, 2).count, window_messages);
}

TEST(BenchCase, OnlySomeVerbsWorkInPlace) {
  EXPECT_TRUE(make_bench_case({.verb = Verb::scan, .in_place = true}, 8, 2).in_place);
  EXPECT_FALSE(make_bench_case({.verb = Verb::all_gather, .in_place = true}, 8, 2).in_place);
}

TEST(BenchCase, VerbsAreWrittenWithEitherDash) {
  EXPECT_EQ(verb_from_bench_name("ping-pong"), Verb::send);
  EXPECT_EQ(verb_from_bench_name("all-reduce"), Verb::all_reduce);
  try {
    verb_from_bench_name("recv");
    FAIL() << "recv was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("barrier, ping_pong"));
  }
}

}  // namespace
}  // namespace tutti::bench
