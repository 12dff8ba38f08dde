// deadline_test.cpp: every wait ends, and the late ranks are named.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "outcomes.hpp"

namespace tutti::contract {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Kind = Outcome::Kind;

/// Opens when all other ranks are done: holds a rank in "user code" without a clock.
class Gate {
 public:
  explicit Gate(int arrivals) : missing_(arrivals) {}
  void arrive() {
    const std::lock_guard guard(mutex_);
    --missing_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock guard(mutex_);
    changed_.wait_for(guard, 60s, [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

class Deadlines : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Deadlines, testing::Values(2, 3, 5, 8));

TEST_P(Deadlines, NameTheRankThatDidNotComeOnEveryRank) {
  const int late = GetParam() - 1;
  const auto world = make_thread_world({.size = GetParam(), .timeout = 20s});
  Gate gate(GetParam() - 1);
  world->run([&](Group& g) {
    std::vector<float> x(100'000, 1.0f);
    if (g.rank() == late) {
      gate.wait();
    } else {
      const Outcome outcome = outcome_of([&] { g.all_reduce(x, {.timeout = 1s}); });
      EXPECT_EQ(outcome.kind, Kind::timeout) << outcome.text;
      EXPECT_THAT(outcome.text,
                  AllOf(HasSubstr("timed out after 1 s"), HasSubstr("waiting for rank " + std::to_string(late)),
                        HasSubstr("has not entered the call")));
      EXPECT_LT(outcome.seconds, 4.0);
      gate.arrive();
    }
    // Broken on all ranks, the late one too, at once and for the same cause.
    const Outcome later = outcome_of([&] { g.barrier(); });
    EXPECT_EQ(later.kind, Kind::timeout) << later.text;
    EXPECT_LT(later.seconds, 1.0);
  });
}

TEST(Deadline, OfAReceiveNamesTheSource) {
  const auto world = make_thread_world({.size = 2, .timeout = 20s});
  world->run([](Group& g) {
    if (g.rank() == 1) return;
    std::vector<float> x(4);
    const Outcome outcome = outcome_of([&] { g.recv(x, 1, {.tag = 3, .timeout = 300ms}); });
    EXPECT_EQ(outcome.kind, Kind::timeout);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1"), HasSubstr("300 ms")));
  });
}

TEST(Deadline, OfAWaitOnlyStopsWaiting) {
  const auto world = make_thread_world({.size = 2, .timeout = 20s});
  Gate gate(1);
  world->run([&](Group& g) {
    std::vector<float> x(4, 1.0f);
    if (g.rank() == 0) {
      Work work = g.start(AllReduce{.data = x});
      EXPECT_EQ(outcome_of([&] { work.wait(50ms); }).kind, Kind::timeout);
      EXPECT_FALSE(work.test());
      gate.arrive();
      work.wait();
    } else {
      gate.wait();
      g.all_reduce(x);
    }
    EXPECT_EQ(x[0], 2.0f);
    g.barrier();
  });
}

TEST(Deadline, OfAGroupsCreationNamesWhoDidNotJoin) {
  const auto world = make_thread_world({.size = 3, .timeout = 20s});
  world->run([](Group& g) {
    if (g.rank() == 2) return;
    const std::vector<int> ranks{0, 1, 2};
    const Outcome outcome = outcome_of([&] { (void)g.subgroup(ranks, {.timeout = 500ms}); });
    EXPECT_EQ(outcome.kind, Kind::timeout) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("2"));
  });
}

TEST(Abort, ReachesEveryMemberWithItsReason) {
  const auto world = make_thread_world({.size = 4, .timeout = 20s});
  world->run([](Group& g) {
    std::vector<float> x(100, 1.0f);
    if (g.rank() == 2) {
      g.abort("the loss is not a number");
    } else {
      const Outcome outcome = outcome_of([&] { g.all_reduce(x); });
      EXPECT_EQ(outcome.kind, Kind::aborted) << outcome.text;
      EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 2"), HasSubstr("the loss is not a number")));
    }
    EXPECT_EQ(outcome_of([&] { g.barrier(); }).kind, Kind::aborted);
  });
}

TEST(Leaving, IsNotALossButMissedInTheNextCall) {
  const auto world = make_thread_world({.size = 3, .timeout = 20s});
  world->run([](Group& g) {
    g.barrier();
    if (g.rank() == 1) {
      g = Group();  // the last handle: this rank leaves the job
      return;
    }
    std::vector<float> x(100, 1.0f);
    const Outcome outcome = outcome_of([&] { g.all_reduce(x); });
    EXPECT_EQ(outcome.kind, Kind::peer_lost) << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1"), HasSubstr("left")));
    EXPECT_LT(outcome.seconds, 5.0);
  });
}

}  // namespace
}  // namespace tutti::contract
