// rank_test.cpp: a rank's turn, with a library of one rank that can be made to fail.
// SPDX-License-Identifier: Apache-2.0
#include "bench/rank.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace tutti::bench {
namespace {

class Alone final : public Library {
 public:
  [[nodiscard]] RankPosition position() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "alone"; }
  void prepare(const BenchCase&) override {}
  void barrier() override { ++barriers; }
  void call(const TimedCall& call) override {
    ++calls;
    auto* out = static_cast<float*>(call.out);
    if (call.out != call.in) std::memcpy(out, call.in, static_cast<std::size_t>(call.bench_case.bytes()));
    if (spoils) out[call.bench_case.count - 1] += 1;
    if (forgets) std::memset(out, 0x7f, static_cast<std::size_t>(call.bench_case.bytes()));
  }
  int calls = 0, barriers = 0;
  bool spoils = false, forgets = false;
};

TEST(Rank, ATurnHasOneUncountedBatchAndABarrierBeforeEach) {
  Alone library;
  Workplace place(library, {.count = 100, .in_place = true});
  const Answer answer = place.run({.bench_case = place.bench_case(), .calls = 5, .batches = 3});
  EXPECT_EQ(answer.us_per_call.size(), 3u);
  EXPECT_EQ(answer.wrong, 0);
  EXPECT_EQ(library.calls, 20);
  EXPECT_EQ(library.barriers, 4);
}

TEST(Rank, WrongElementsOfTheLastBatchAreCounted) {
  for (const bool in_place : {true, false}) {
    Alone library;
    library.spoils = true;
    Workplace place(library, {.count = 3000, .in_place = in_place});
    EXPECT_EQ(place.run({.bench_case = place.bench_case(), .calls = 4, .batches = 2}).wrong, 4);
    library.spoils = false;
    EXPECT_EQ(place.run({.bench_case = place.bench_case(), .calls = 4, .batches = 2}).wrong, 0);
    library.forgets = true;
    EXPECT_EQ(place.run({.bench_case = place.bench_case(), .calls = 4, .batches = 2}).wrong, 12'000);
  }
}

TEST(Rank, ResultsOfAnEarlierBatchAreNotTakenForNewOnes) {
  class Idle final : public Library {
   public:
    [[nodiscard]] RankPosition position() const override { return {}; }
    [[nodiscard]] std::string describe() const override { return "idle"; }
    void prepare(const BenchCase&) override {}
    void barrier() override {}
    void call(const TimedCall& call) override {
      if (works) std::memcpy(call.out, call.in, static_cast<std::size_t>(call.bench_case.bytes()));
    }
    bool works = true;
  } library;
  Workplace place(library, {.count = 1000});
  EXPECT_EQ(place.run({.bench_case = place.bench_case(), .calls = 2, .batches = 1}).wrong, 0);
  library.works = false;
  EXPECT_GT(place.run({.bench_case = place.bench_case(), .calls = 2, .batches = 1}).wrong, 500);
}

TEST(Rank, EveryRankIsRootInTurn) {
  for (int number = 0; number < 9; ++number) EXPECT_EQ(root_of_call(number, 3), number % 3);
}

}  // namespace
}  // namespace tutti::bench
