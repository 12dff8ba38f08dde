// arrays_test.cpp: patterns tell right results from wrong ones.
// SPDX-License-Identifier: Apache-2.0
#include "bench/arrays.hpp"

#include <gmock/gmock.h>

namespace tutti::bench {
namespace {

TEST(Arrays, APatternFindsItselfInEveryDtype) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::int64_t count = 3 * pattern_period + 7;
    std::vector<std::byte> array(static_cast<std::size_t>(count) * size_of(dtype));
    const Pattern pattern_of_one(dtype, {1, 2});
    pattern_of_one.write(array.data(), count, 5000);
    EXPECT_EQ(pattern_of_one.count_wrong(array.data(), count, 5000), 0) << name_of(dtype);
    EXPECT_GT(pattern_of_one.count_wrong(array.data(), count, 5001), count / 4) << name_of(dtype);
    EXPECT_GT(Pattern(dtype, {0, 1}).count_wrong(array.data(), count, 5000), count / 4) << name_of(dtype);
  }
}

TEST(Arrays, EachWrongElementIsCounted) {
  std::vector<float> array(10'000);
  const Pattern sum(DType::float32, {0, 4});
  sum.write(array.data(), 10'000, 3);
  EXPECT_EQ(array[20], static_cast<float>(pattern(0, 23) + pattern(1, 23) + pattern(2, 23) + pattern(3, 23)));
  array[0] += 1;
  array[5000] += 1;
  array[9999] += 1;
  EXPECT_EQ(sum.count_wrong(array.data(), 10'000, 3), 3);
}

TEST(Arrays, BlocksComeFromTheirRanksAndPlaces) {
  const BenchCase bench_case{.verb = Verb::all_to_all, .count = 30};
  EXPECT_THAT(expected_parts(bench_case, {.rank = 2, .size = 3}, 0),
              testing::ElementsAre(Part{0, 10, {0, 1}, 20}, Part{10, 10, {1, 2}, 20}, Part{20, 10, {2, 3}, 20}));
  const BenchCase cut{.verb = Verb::reduce_scatter, .count = 30};
  EXPECT_THAT(expected_parts(cut, {.rank = 1, .size = 3}, 0), testing::ElementsAre(Part{0, 10, {0, 3}, 10}));
}

TEST(Arrays, OnlyTheRootExpectsWhatOnlyTheRootGets) {
  for (const Verb verb : {Verb::reduce, Verb::gather}) {
    const BenchCase bench_case{.verb = verb, .count = 8};
    EXPECT_FALSE(expected_parts(bench_case, {.rank = 1, .size = 4}, 1).empty());
    EXPECT_TRUE(expected_parts(bench_case, {.rank = 0, .size = 4}, 1).empty());
  }
  EXPECT_TRUE(expected_parts({.verb = Verb::exscan, .count = 8}, {.rank = 0, .size = 4}, 0).empty());
}

TEST(Arrays, ArraysAreAsLongAsTheVerbHasThem) {
  const auto counts = [](Verb verb, bool in_place) {
    return array_counts({.verb = verb, .count = 24, .in_place = in_place}, 4);
  };
  EXPECT_EQ(counts(Verb::all_reduce, true), (ArrayCounts{24, 0}));
  EXPECT_EQ(counts(Verb::all_reduce, false), (ArrayCounts{24, 24}));
  EXPECT_EQ(counts(Verb::broadcast, false), (ArrayCounts{24, 0}));
  EXPECT_EQ(counts(Verb::gather, false), (ArrayCounts{6, 24}));
  EXPECT_EQ(counts(Verb::scatter, false), (ArrayCounts{24, 6}));
  EXPECT_EQ(counts(Verb::barrier, false), (ArrayCounts{0, 0}));
}

}  // namespace
}  // namespace tutti::bench
