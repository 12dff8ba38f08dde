// report_test.cpp: statistics, turns, cases, the table and the JSON lines.
// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <gmock/gmock.h>

#include "bench/picture.hpp"
#include "bench/run.hpp"
#include "bench/statistics.hpp"

namespace tutti::bench {
namespace {

TEST(Statistics, MedianPercentileAndGeometricMean) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile({1, 2, 3}, 0.99), 3);
  EXPECT_EQ(percentile({5, 9}, 0), 5);
  EXPECT_DOUBLE_EQ(geometric_mean({1, 4, 16}), 4);
}

TEST(Turns, AreAsLongForFastCallsAsForSlowOnes) {
  const Turn fast = turn_of({.count = 2}, 0.2), slow = turn_of({.count = 16 << 20}, 40'000);
  EXPECT_EQ(fast.calls, 256);
  EXPECT_EQ(fast.batches, 200);
  EXPECT_EQ(slow.calls, 1);
  EXPECT_EQ(slow.batches, 1);
  const Turn middle = turn_of({.count = 1000}, 10);
  EXPECT_EQ(middle.calls, 6);
  EXPECT_EQ(middle.batches, 200);
  EXPECT_EQ(first_turn_of({.count = 16 << 20}).calls, 1);
}

std::vector<Row> two_rows() {
  Row small{.bench_case = {.count = 2, .in_place = true}, .ranks = 2, .us_limit = 0.1};
  small.measurements = {{.library = "tutti", .us_median = 0.2, .us_p99 = 0.31},
                        {.library = "openmpi", .version = "5.0.11", .is_peer = true, .us_median = 0.55, .us_p99 = 0.6},
                        {.library = "mpich", .version = "5.0.2", .is_peer = true, .us_median = 0.5, .us_p99 = 0.6},
                        {.library = "gloo", .is_peer = true, .trouble = "not today"}};
  Row large{.bench_case = {.count = 16 << 20, .in_place = true}, .ranks = 2, .us_limit = 5500};
  large.measurements = {
      {.library = "tutti", .us_median = 10'000, .us_p99 = 12'345.6},
      {.library = "openmpi", .version = "5.0.11", .is_peer = true, .us_median = 32'000, .us_p99 = 33'000}};
  return {small, large};
}

TEST(Report, TheTableHasAColumnForEachQuestion) {
  const TableShape shape{.has_peers = true, .has_limits = true};
  const auto rows = two_rows();
  EXPECT_EQ("\n" + table_head(shape) + table_lines(rows[0], shape) + table_lines(rows[1], shape) + table_foot(rows), R"(
#    bytes      count     median        p99    algbw    busbw  #wrong  best peer               median   ratio      limit  close
#                             us         us     GB/s     GB/s                                      us                 us       
         8          2      0.200      0.310     0.04     0.04       0  mpich 5.0.2              0.500   2.50x      0.100    50%
  67108864   16777216    10000.0    12345.6     6.71     6.71       0  openmpi 5.0.11         32000.0   3.20x     5500.0    55%
# tutti: 2.83x as fast as the best peer in geometric mean of 2 sizes, at least 2.50x (at 8 B)
)");
}

TEST(Report, WrongElementsAreToldAtTheEnd) {
  auto rows = two_rows();
  rows[0].measurements[0].wrong = 2;
  rows[1].measurements[0].wrong = 3;
  EXPECT_THAT(table_foot(rows), testing::HasSubstr("# tutti: 5 elements are WRONG\n"));
}

TEST(Report, JsonHasOneLineForEachLibraryWithATime) {
  const std::string text = json_lines(two_rows()[0]);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(
      text, testing::StartsWith(
                R"({"verb": "all_reduce", "dtype": "float32", "bytes": 8, "ranks": 2, )"
                R"("library": "tutti", "us_median": 0.2000, "us_p99": 0.3100, "algbw_GBps": 0.0400, )"
                R"("busbw_GBps": 0.0400, "in_place": true, "memory": "heap", "fresh": true, "version": "", "wrong": 0})"
                "\n"));
}

TEST(Report, BusBandwidthIsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Verb::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Verb::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Verb::broadcast, 4), 1);
}

TEST(BenchCases, ThatRoundingMakesEqualAreMeasuredOnce) {
  const BenchOptions options{.ranks = 8, .sizes = {8, 16, 32, 64}};
  EXPECT_EQ(cells_of(options, Verb::all_gather, Form::in_place).size(), 2u);
  EXPECT_EQ(cells_of(options, Verb::all_reduce, Form::in_place).size(), 4u);
  EXPECT_EQ(cells_of(options, Verb::barrier, Form::in_place).size(), 1u);
}

TEST(Picture, HasACurveForEachLibraryAndTheLimit) {
  const sim::Plot plot = plot_of(two_rows(), "title", "subtitle");
  std::vector<std::string> names;
  for (const sim::Curve& curve : plot.curves) names.push_back(curve.name);
  EXPECT_THAT(names, testing::ElementsAre("tutti", "openmpi", "mpich", "limit"));
  EXPECT_EQ(plot.curves[0].points.size(), 2u);
  EXPECT_DOUBLE_EQ(plot.curves[0].points[1].y, 0.01);
  EXPECT_THAT(plot.x_labels, testing::ElementsAre("8 B", "64 MiB"));
  EXPECT_EQ(picture_path("a/b.svg", 1), "a/b.svg");
  EXPECT_EQ(picture_path("a/b.svg", 2), "a/b-2.svg");
}

}  // namespace
}  // namespace tutti::bench
