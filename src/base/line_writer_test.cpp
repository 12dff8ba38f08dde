// line_writer_test.cpp: writing a line never blocks, whatever becomes of the line.
// SPDX-License-Identifier: Apache-2.0
#include "base/line_writer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    out = ends[0], in = ends[1];
  }
  /// Until nothing came for a while.
  [[nodiscard]] std::string read_all() const {
    fcntl(out, F_SETFL, O_NONBLOCK);
    std::string text;
    for (int idle = 0; idle < 100;) {
      char buffer[4096];
      const ssize_t got = ::read(out, buffer, sizeof buffer);
      if (got > 0) {
        text.append(buffer, static_cast<std::size_t>(got));
        idle = 0;
      } else {
        ++idle;
        usleep(2000);
      }
    }
    return text;
  }
  int out = -1, in = -1;
};

// Its thread outlives every test.
LineWriter& writer_to(const Pipe& pipe) { return *new LineWriter(pipe.in); }

TEST(LineWriter, writes_lines_in_their_order) {
  const Pipe pipe;
  LineWriter& writer = writer_to(pipe);
  for (int i = 0; i < 100; ++i) writer.write("line " + std::to_string(i) + "\n");
  EXPECT_TRUE(writer.flush(10s));
  EXPECT_THAT(pipe.read_all(), AllOf(StartsWith("line 0\nline 1\nline 2\n"), EndsWith("line 98\nline 99\n")));
}

TEST(LineWriter, does_not_block_when_nobody_reads_and_counts_what_is_lost) {
  const Pipe pipe;
  LineWriter& writer = writer_to(pipe);
  const std::string line = std::string(999, 'x') + "\n";
  for (int i = 0; i < 5000; ++i) writer.write(line);  // 5 MB; a pipe holds 64 KiB
  EXPECT_FALSE(writer.flush(50ms));
  const std::string text = pipe.read_all();
  EXPECT_TRUE(writer.flush(10s));
  EXPECT_THAT(text, HasSubstr("lines were left out here: stderr was not read\n"));
  writer.write("and on\n");
  EXPECT_THAT(pipe.read_all(), EndsWith("and on\n"));
}

TEST(LineWriter, of_stderr_writes_what_is_queued_when_the_process_ends_and_in_a_forked_child) {
  const Pipe pipe;
  LineWriter::of_stderr().write("");  // there is one, with a thread, before the fork
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe.in, STDERR_FILENO);
    LineWriter::of_stderr().write("from the child\n");
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pipe.read_all(), "from the child\n");
}

}  // namespace
}  // namespace tutti
