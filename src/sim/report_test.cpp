// report_test.cpp: what `tutti sim` prints and draws.
// SPDX-License-Identifier: Apache-2.0
#include "sim/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tutti/error.hpp>

#include "sim/command.hpp"
#include "sim/plot.hpp"

namespace tutti::sim {
namespace {

using testing::HasSubstr;

std::string output_of(std::vector<std::string> words) {
  CLI::App tutti("Tutti", "tutti");
  add_command(tutti);
  std::reverse(words.begin(), words.end());
  testing::internal::CaptureStdout();
  try {
    tutti.parse(words);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

std::string refusal_of(const std::vector<std::string>& words) {
  try {
    output_of(words);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Report, TimesAndBytesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(duration_text(0.001234), "1.23 ms");
  EXPECT_EQ(duration_text(0.0999e-3), "99.9 µs");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(0), "0.00 ns");
  EXPECT_EQ(bytes_text(65536), "64 KiB");
  EXPECT_EQ(bytes_text(1 << 19), "512 KiB");
  EXPECT_EQ(bytes_text(3 << 19), "1.5 MiB");
}

TEST(Report, EveryAlgorithmHasALineAndOneIsSelected) {
  const std::string text = output_of({"sim", "all_reduce", "--ranks", "16", "--bytes", "64K"});
  for (const char* name :
       {"ring", "recursive_doubling", "halving_doubling", "circulant", "double_tree", "hierarchical"})
    EXPECT_THAT(text, HasSubstr(name));
  EXPECT_NE(text.find("selected"), std::string::npos);
  EXPECT_EQ(text.find("selected"), text.rfind("selected"));
}

TEST(Report, JsonHasOneObjectPerLine) {
  std::istringstream lines(output_of({"sim", "broadcast", "--ranks", "4,8", "--bytes", "1K", "--json"}));
  int objects = 0, selected = 0;
  for (std::string line; std::getline(lines, line); ++objects) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_EQ(object["verb"], "broadcast");
    EXPECT_GT(object["seconds"].get<double>(), 0);
    selected += object["selected"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(objects, 8);
  EXPECT_EQ(selected, 2);
}

TEST(Report, ADeadRankIsNamedAndEveryoneKnowsInTheEnd) {
  const auto object = nlohmann::json::parse(
      output_of({"sim", "barrier", "--ranks", "64", "--dead", "5", "--algorithm", "selected", "--json"}));
  EXPECT_EQ(object["dead"], 5);
  const double noticed = object["noticed_seconds"], decided = object["decided_seconds"],
               everyone = object["everyone_knows_seconds"];
  EXPECT_LT(noticed, 0.001);
  EXPECT_GE(decided, noticed + 0.030);  // the settle window
  EXPECT_GT(everyone, decided);
  EXPECT_LT(everyone, 0.1);
  EXPECT_THAT(output_of({"sim", "barrier", "--ranks", "64", "--dead", "0"}),
              HasSubstr("Rank 0 is dead: every survivor"));
  EXPECT_THAT(output_of({"sim", "barrier", "--dead", "3:host"}), HasSubstr("with its host"));
}

TEST(Report, TheDeciderIsReplacedWhenItIsTheDeadOne) {
  const double other = spread_of_loss({.ranks = 16, .dead = 3}, Death::seen).everyone;
  const double decider = spread_of_loss({.ranks = 16, .dead = 0}, Death::seen).everyone;
  EXPECT_GT(decider, other + 0.05);
  EXPECT_GT(spread_of_loss({.ranks = 16, .dead = 3}, Death::silent).noticed, 1);
}

TEST(Report, BadInputIsRefusedWithTheReason) {
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--bytes", "1Q"}), HasSubstr("--bytes 1Q"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--ranks", "20000"}), HasSubstr("1 to 16384"));
  EXPECT_THAT(refusal_of({"sim", "scan", "--algorithm", "ring"}), HasSubstr("does not serve scan"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--algorithm", "rong"}), HasSubstr("is not an algorithm"));
  EXPECT_THAT(refusal_of({"sim", "all_produce"}), HasSubstr("all_produce"));
  EXPECT_THAT(refusal_of({"sim", "send"}), HasSubstr("no collective"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--slow", "3"}), HasSubstr("--slow 3: RANK:FACTOR"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--slow", "9:2"}), HasSubstr("the ranks are 0 to 7"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--dead", "x"}), HasSubstr("not a rank"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--bandwidth", "0"}), HasSubstr("more than 0 GB/s"));
  EXPECT_THAT(refusal_of({"sim", "all_reduce", "--oversubscription", "0.5"}), HasSubstr("1 (none) or more"));
}

TEST(Plot, EveryCurveIsDrawnNamedAndInsideThePicture) {
  Plot plot;
  plot.title = "a < b";
  plot.x_labels = {"8", "16"};
  plot.x_marks = {8, 16};
  plot.curves = {{.name = "one", .points = {{.x = 8, .y = 1e-5}, {.x = 16, .y = 2e-5, .ringed = true}}},
                 {.name = "two", .points = {{.x = 8, .y = 1e-5, .solid = false}, {.x = 16, .y = 2e-5}}}};
  const std::string svg = svg_of(plot);
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr(">one</text>"));
  EXPECT_THAT(svg, HasSubstr(">two</text>"));
  EXPECT_THAT(svg, HasSubstr("hollow: closed form"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace tutti::sim
