// capture_test.cpp: programs that answer, that fail, that are missing, and that do not end.
// SPDX-License-Identifier: Apache-2.0
#include "cli/capture.hpp"

#include <gmock/gmock.h>

#include "cli/probes.hpp"

namespace tutti::cli {
namespace {

using namespace std::chrono_literals;

TEST(Capture, GivesWhatAProgramPrints) {
  const Captured captured = capture({"sh", "-c", "echo hello; echo unseen >&2"}, 60s);
  EXPECT_EQ(captured.output, "hello\n");
  EXPECT_EQ(captured.problem, "");
}

TEST(Capture, SaysHowAProgramFailed) {
  EXPECT_EQ(capture({"sh", "-c", "exit 3"}, 60s).problem, "sh ended with status 3");
  EXPECT_EQ(capture({"sh", "-c", "kill -9 $$"}, 60s).problem, "sh was ended by signal 9");
  EXPECT_THAT(capture({"no-such-program-anywhere"}, 60s).problem, testing::HasSubstr("No such file"));
}

TEST(Capture, EndsAProgramWhoseTimeIsOver) {
  EXPECT_THAT(capture({"sleep", "1000"}, 50ms).problem, testing::HasSubstr("did not answer within 50 ms"));
  // One that has closed its output, and what it started, too.
  EXPECT_THAT(capture({"sh", "-c", "exec >&-; sleep 1000"}, 200ms).problem, testing::HasSubstr("did not answer"));
}

TEST(Capture, StopsReadingAFlood) {
  const Captured captured = capture({"sh", "-c", "yes"}, 60s);
  EXPECT_NE(captured.problem, "");
  EXPECT_LT(captured.output.size(), std::size_t{2} << 20);
}

TEST(ProbePython, APythonThatIsMissingIsAReasonAndNoFailure) {
  const std::string path = testing::TempDir();
  const PythonFacts facts = probe_python(Environment{{"VIRTUAL_ENV", path + "/no-such-folder"}});
  ASSERT_EQ(facts.frameworks.size(), 4u);
  for (const FrameworkFacts& framework : facts.frameworks) {
    EXPECT_NE(framework.version.empty(), framework.reason.empty()) << framework.name << " has a version or a reason";
  }
}

}  // namespace
}  // namespace tutti::cli
