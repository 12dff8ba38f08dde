// supervision_test.cpp: the small parts of supervision: causes, last lines, /proc, control groups, the printer.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "launch/cause.hpp"
#include "launch/printer.hpp"
#include "launch/tail.hpp"

namespace tutti::launch {
namespace {

using testing::HasSubstr;
using Kind = Cause::Kind;

TEST(Cause, BecomesAStatusAsAShellWouldSayIt) {
  EXPECT_EQ(exit_status({}), 0);
  EXPECT_EQ(exit_status({.kind = Kind::exited, .value = 7}), 7);
  EXPECT_EQ(exit_status({.kind = Kind::signalled, .value = SIGSEGV}), 139);
  EXPECT_EQ(exit_status({.kind = Kind::asked, .value = SIGINT}), 130);
  EXPECT_EQ(exit_status({.kind = Kind::timed_out}), 124);
  EXPECT_EQ(exit_status({.kind = Kind::not_started, .value = ENOEXEC}), 2);
  EXPECT_EQ(exit_status({.kind = Kind::output_lost, .value = EPIPE}), 141);
}

TEST(Cause, NamesTheRankWhatHappenedAndAfterHowLong) {
  const JobFacts job{.world_size = 8, .program = "train.py"};
  EXPECT_EQ(
      describe({.kind = Kind::exited, .rank = 3, .process = 17, .value = 7, .after = std::chrono::milliseconds(1240)},
               job),
      "rank 3 of 8 (train.py, process 17) exited with status 7 after 1.24 s");
  EXPECT_EQ(
      describe(
          {.kind = Kind::signalled, .rank = 0, .process = 17, .value = SIGSEGV, .after = std::chrono::milliseconds(9)},
          job),
      "rank 0 of 8 (train.py, process 17) was killed by signal 11, SIGSEGV (Segmentation fault) after 9 ms");
  EXPECT_THAT(describe({.kind = Kind::signalled, .rank = 0, .value = SIGKILL}, job), HasSubstr("want of memory"));
  EXPECT_EQ(describe({.kind = Kind::timed_out, .limit = std::chrono::seconds(30), .ranks = {1, 2, 3, 7}}, job),
            "the job ran past --timeout 30 s and was ended; ranks 1-3, 7 of 8 still ran");
}

TEST(Tail, KeepsTheLastLinesHoweverMuchWasSaid) {
  Tail tail;
  EXPECT_EQ(tail.last_lines(3), "");
  for (int i = 0; i < 10000; ++i) tail.add("line " + std::to_string(i) + "\n");
  EXPECT_EQ(tail.last_lines(2), "line 9998\nline 9999\n");
  tail.add(std::string(100000, 'x') + "\nthe end\n");
  EXPECT_EQ(tail.last_lines(1), "the end\n");
  Tail few;
  few.add("one\n");
  EXPECT_EQ(few.last_lines(5), "one\n");
}

class PrinterTest : public testing::Test {
 protected:
  PrinterTest() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
  }

  static void wait_until_idle(Printer& printer) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!printer.is_idle() && std::chrono::steady_clock::now() < deadline) {
      pollfd progress{.fd = printer.fd(), .events = POLLIN, .revents = 0};
      poll(&progress, 1, 1000);
      printer.acknowledge();
    }
    EXPECT_TRUE(printer.is_idle());
  }

  UniqueFd reader_, writer_;
};

TEST_F(PrinterTest, WritesBothStreamsInOrder) {
  Printer printer(writer_.get(), writer_.get());
  printer.text(Stream::output).append("one ");
  printer.text(Stream::error).append("two ");
  printer.text(Stream::output).append("three");
  printer.flush();
  wait_until_idle(printer);
  char text[64];
  const ssize_t bytes = read(reader_.get(), text, sizeof(text));
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))), "one two three");
}

TEST_F(PrinterTest, HasNoRoomWhileNobodyReadsAndSaysWhenNobodyEverWill) {
  signal(SIGPIPE, SIG_IGN);
  Printer printer(writer_.get(), writer_.get());
  for (int i = 0; i < 100 && printer.has_room(); ++i) {
    printer.text(Stream::output).append(100000, 'x');
    printer.flush();
  }
  EXPECT_FALSE(printer.has_room());
  EXPECT_EQ(printer.failure(Stream::output), 0);
  reader_.reset();
  wait_until_idle(printer);
  EXPECT_EQ(printer.failure(Stream::output), EPIPE);
  EXPECT_TRUE(printer.has_room());
}

}  // namespace
}  // namespace tutti::launch
