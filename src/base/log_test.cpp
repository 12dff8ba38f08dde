// log_test.cpp: what a log line looks like and which lines appear.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tutti/error.hpp>

#include "base/line_writer.hpp"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Captured {
  std::vector<std::string> lines;
  Log::Sink sink() {
    return [this](std::string_view line) { lines.emplace_back(line); };
  }
};

TEST(Log, a_line_says_who_how_serious_and_what) {
  Captured captured;
  const Log log(Log::Level::info, "tutti", captured.sink());
  log.info("{} peers", 3);
  log.for_rank(7).warn("slow");
  EXPECT_THAT(captured.lines, ElementsAre("tutti info: 3 peers\n", "tutti[7] warn: slow\n"));
}

TEST(Log, lines_below_the_level_do_not_appear) {
  Captured captured;
  const Log log(Log::Level::warn, "tutti", captured.sink());
  log.debug("d");
  log.info("i");
  log.warn("w");
  log.error("e");
  EXPECT_THAT(captured.lines, ElementsAre("tutti warn: w\n", "tutti error: e\n"));
}

TEST(Log, control_characters_do_not_reach_the_terminal) {
  Captured captured;
  Log(Log::Level::warn, "tutti", captured.sink()).warn("from peer: {}", "\x1b[2Jé");
  EXPECT_THAT(captured.lines, ElementsAre("tutti warn: from peer: \\x1b[2Jé\n"));
}

TEST(Log, without_a_sink_writes_whole_lines_to_stderr) {
  testing::internal::CaptureStderr();
  Log().error("broken");
  ASSERT_TRUE(LineWriter::of_stderr().flush(std::chrono::seconds(10)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tutti error: broken\n");
}

TEST(Log, a_host_program_takes_the_lines_and_sets_the_level) {
  Captured captured;
  Log::redirect(Log::Level::info, captured.sink());
  const Log log(Log::level_from(Environment{}));
  log.info("joined");
  log.debug("not asked for");
  EXPECT_EQ(Log::level_from(Environment{{"TUTTI_LOG", "debug"}}), Log::Level::debug);
  Log::redirect(Log::Level::info, {});
  EXPECT_EQ(Log::level_from(Environment{}), Log::Level::warn);
  EXPECT_THAT(captured.lines, ElementsAre("tutti info: joined\n"));
}

TEST(Log, takes_its_level_from_the_environment) {
  EXPECT_EQ(Log::level_from(Environment()), Log::Level::warn);
  EXPECT_EQ(Log::level_from(Environment{{"TUTTI_LOG", "debug"}}), Log::Level::debug);
  EXPECT_THAT(
      [] {
        Log::level_from(Environment{{"TUTTI_LOG", "loud"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("TUTTI_LOG=\"loud\"")));
}

}  // namespace
}  // namespace tutti
