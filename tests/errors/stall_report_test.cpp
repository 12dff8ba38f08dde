// stall_report_test.cpp: one report per stall, which names the late ranks; and a blocked stderr stops no rank.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/line_writer.hpp"
#include "outcomes.hpp"

namespace tutti::contract {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;
using Kind = Outcome::Kind;

class ShortPatience {
 public:
  ShortPatience() { setenv("TUTTI_STALL_WARNING", "300ms", 1); }
  ~ShortPatience() { unsetenv("TUTTI_STALL_WARNING"); }
  ShortPatience(const ShortPatience&) = delete;
  ShortPatience& operator=(const ShortPatience&) = delete;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// So many ranks have come to a place, however slow the machine is today.
class Count {
 public:
  void add() { count_.fetch_add(1); }
  void wait_for(int count) const {
    const TimePoint limit = deadline_after(steady_clock().now(), 60s);
    while (count_ < count && steady_clock().now() < limit) std::this_thread::sleep_for(5ms);
  }

 private:
  std::atomic<int> count_ = 0;
};

/// What the ranks write while one of them comes late by more than their patience.
std::string reports_when_late(int size, int late) {
  const ShortPatience patience;
  testing::internal::CaptureStderr();
  {
    const auto world = make_thread_world({.size = size, .timeout = 30s});
    Count waiting;
    world->run([&](Group& g) {
      std::vector<float> x(1000, 1.0f);
      g.all_reduce(x);
      waiting.add();
      if (g.rank() == late) {
        waiting.wait_for(size);
        std::this_thread::sleep_for(1500ms);
      }
      g.all_reduce(x);
    });
  }
  EXPECT_TRUE(LineWriter::of_stderr().flush(10s));
  return testing::internal::GetCapturedStderr();
}

TEST(StallReport, ComesFromTheLowestRankThatWaitsAndNamesWhoIsLate) {
  const std::string text = reports_when_late(8, 5);
  EXPECT_EQ(count_of(text, "\n"), 1u) << text;
  EXPECT_THAT(text, AllOf(StartsWith("tutti[0] warn: all_reduce #2 (float32 × 1000, sum)"),
                          HasSubstr("has waited for 300 ms on rank 0"), HasSubstr("waiting for rank 5"),
                          HasSubstr("has not entered the call (its next is #2) and is in no call")));
  EXPECT_LT(text.size(), 300u);
}

TEST(StallReport, ComesFromTheNextRankWhenTheLowestIsTheLateOne) {
  const std::string text = reports_when_late(4, 0);
  EXPECT_EQ(count_of(text, "\n"), 1u) << text;
  EXPECT_THAT(text, AllOf(StartsWith("tutti[1] warn: "), HasSubstr("waiting for rank 0")));
}

TEST(StallReport, OfAReceiveNamesTagPeerAndWhatThePeerWaitsForInstead) {
  const auto world = make_thread_world({.size = 2, .timeout = 30s});
  const auto outcomes = outcomes_in(*world, [](Group& g) {
    std::vector<float> x(4);
    g.recv(x, 1 - g.rank(), {.tag = static_cast<std::uint32_t>(3 + g.rank()), .timeout = 600ms});
  });
  const std::string both = outcomes[0].text + outcomes[1].text;
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.kind, Kind::timeout) << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(Not(HasSubstr("send")), HasSubstr("timed out after 600 ms on rank")));
    EXPECT_EQ(count_of(outcome.text, std::to_string(rank) + " of 2: "), 1u) << outcome.text;
  }
  EXPECT_THAT(
      both, AllOf(HasSubstr("recv (float32 × 4, tag 3) from rank 1 in the world"),
                  HasSubstr("recv (float32 × 4, tag 4) from rank 0 in the world"), HasSubstr(", which waits in recv")));
}

TEST(StallReport, OfGroupsInOppositeOrderNamesTheOtherGroup) {
  const auto world = make_thread_world({.size = 2, .timeout = 30s});
  const auto outcomes = outcomes_in(*world, [](Group& g) {
    Group first = g.split(0), second = g.split(0);
    (g.rank() == 0 ? first : second).barrier({.timeout = 600ms});
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.kind, Kind::timeout) << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("has not entered the call"), HasSubstr("and waits in barrier #"),
                                    HasSubstr("in group "), HasSubstr(" of ranks 0-1")));
  }
}

TEST(StallReport, SaysTheCallOnceOnEveryRank) {
  const auto world = make_thread_world({.size = 3, .timeout = 30s});
  Count ended;
  const auto outcomes = outcomes_in(*world, [&](Group& g) {
    std::vector<float> x(100);
    if (g.rank() == 2) return ended.wait_for(2);
    const Outcome outcome = outcome_of([&] { g.all_reduce(x, {.timeout = 700ms}); });
    ended.add();
    EXPECT_EQ(outcome.kind, Kind::timeout) << outcome.text;
    throw Timeout(outcome.text);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& text = outcomes[static_cast<std::size_t>(rank)].text;
    EXPECT_EQ(count_of(text, "all_reduce"), 1u) << text;
    EXPECT_EQ(count_of(text, " of 3: "), 1u) << text;
  }
}

/// stderr is a pipe that is full, until the object goes.
class BlockedStderr {
 public:
  BlockedStderr() : before_(dup(STDERR_FILENO)) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    out_ = ends[0];
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (::write(ends[1], "full", 4) > 0) {}
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  ~BlockedStderr() { open(); }
  BlockedStderr(const BlockedStderr&) = delete;
  BlockedStderr& operator=(const BlockedStderr&) = delete;
  /// A write that was blocked fails.
  void open() {
    if (out_ < 0) return;
    dup2(before_, STDERR_FILENO);
    close(std::exchange(out_, -1));
    close(before_);
  }

 private:
  int before_, out_ = -1;
};

TEST(BlockedLog, DoesNotStopARankThatWarns) {
  const ShortPatience patience;
  const auto world = make_thread_world({.size = 2, .timeout = 20s});
  BlockedStderr blocked;
  Count waiting;
  world->run([&](Group& g) {
    std::vector<float> x(1000, 1.0f);
    waiting.add();
    if (g.rank() == 1) {
      waiting.wait_for(2);
      std::this_thread::sleep_for(1s);
    }
    const Outcome outcome = outcome_of([&] { g.all_reduce(x, {.timeout = 5s}); });
    if (outcome.kind != Kind::fine) blocked.open();  // so that the other one ends, too
    EXPECT_EQ(outcome.kind, Kind::fine) << outcome.text;
    EXPECT_EQ(x[0], 2.0f);
  });
}

}  // namespace
}  // namespace tutti::contract
