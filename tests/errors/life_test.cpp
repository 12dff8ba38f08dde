// life_test.cpp: how calls of a C++ program may be left: exceptions, interrupts, callbacks that do anything, threads, exit().
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"
#include "outcomes.hpp"
#include "rank_lives.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using Kind = Outcome::Kind;

constexpr std::uint32_t never_tag = 77;

bool is_all(const std::vector<int>& data, int value) {
  return std::ranges::all_of(data, [&](int each) { return each == value; });
}

// All ranks add ones: the job is well.
bool is_well(Group& world) {
  std::vector<int> data(1000, 1);
  world.all_reduce(data);
  return is_all(data, world.size());
}

int status(bool is_right) { return is_right ? 0 : wrong_status; }

TEST(Life, AWorkThatAnExceptionDropsEndsBeforeItsMemoryGoes) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    if (world.rank() == 0) {
      try {
        std::vector<int> data(50'000, 1);
        const Work work = world.start(AllReduce{.data = data});
        lives.mark("started");
        throw std::runtime_error("the program's own");
      } catch (const std::runtime_error&) {}
      const std::vector<int> other(50'000, 1'000'000);  // the memory may be the same
      return status(is_well(world));
    }
    lives.wait_for("started");
    std::vector<int> data(50'000, 1);
    world.all_reduce(data);
    return status(is_all(data, 3) && is_well(world));
  }),
              Each(0));
}

// A rank that has left is ahead of one that has yet to make the same calls. One that refuses its call catches up, too.
TEST(Life, ACallThatAllRanksRefuseLetsThemLeaveOneAfterTheOther) {
  RankLives lives(2);
  EXPECT_THAT(lives.run([&](Group& world) {
    if (world.rank() == 1) lives.wait_for("left");
    std::vector<int> data(2, 1);
    const Outcome refused = outcome_of([&] { world.all_reduce(data, {.op = Op::mean}); });
    if (refused.kind != Kind::invalid_argument) return wrong_status;
    finalize();  // throws what differed
    lives.mark("left");
    return 0;
  }),
              Each(0));
}

// What a binding does when a handler of its language raises: the wait is left, and the memory is the caller's again.
TEST(Life, AReceiveThatIsInterruptedLeavesItsMessageToTheNextAndItsMemoryAlone) {
  RankLives lives(2);
  EXPECT_THAT(lives.run([&](Group& world) {
    constexpr std::size_t count = 2'000'000;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const int value = static_cast<int>(i) + 1;
      std::vector<int> data(count, world.rank() == 1 ? value : 0), again(count);
      if (world.rank() == 1) {
        world.send(data, 0, {.tag = i});
        continue;
      }
      GroupCore& core = *world.core();
      const auto receive =
          core.start_message(nullptr, {.verb = Verb::recv, .data = View(data), .peer = 1, .tag = i, .timeout = 60s});
      const TimePoint limit = steady_clock().now() + i * 300us;
      core.runtime().drive([&] { return receive->ended(); }, limit);
      core.interrupt(*receive);
      if (!receive->ended()) return wrong_status;
      std::ranges::fill(data, -7);
      world.recv(again, 1, {.tag = i});
      if (!is_all(again, value) || !is_all(data, -7)) return wrong_status;
    }
    return status(is_well(world));
  }),
              Each(0));
}

TEST(Life, ACollectiveThatIsInterruptedBreaksItsGroupWithThatCauseAndNoOther) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    Group group = world.split(0);
    std::vector<int> data(50'000, 1);
    if (world.rank() == 0) {
      GroupCore& core = *group.core();
      const View array(data);
      GroupCore::Entry entry;
      const auto call = core.start(entry, {.verb = Verb::all_reduce, .input = array, .output = array}, 60s);
      core.interrupt(*call);
      std::ranges::fill(data, -7);
      lives.mark("interrupted");
    } else {
      lives.wait_for("interrupted");
    }
    const Outcome outcome = outcome_of([&] {
      std::vector<int> other(50'000, 2);
      group.all_reduce(other);
      group.barrier();  // a rank may have its result before it hears of the interrupt
      group.barrier();
    });
    const bool is_named =
        outcome.kind == Kind::aborted && outcome.text.find("rank 0 was interrupted in") != std::string::npos;
    const bool is_untouched = world.rank() != 0 || is_all(data, -7);
    return status(is_named && is_untouched && is_well(world));
  }),
              Each(0));
}

// Neither receives what the other one sends, and each lets its own calls end before it goes.
TEST(Life, RanksThatLeaveWithMessagesForEachOtherDoNotWaitForTheirDeadlines) {
  for (const int delay_ms : {0, 30}) {
    RankLives lives(3);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(lives.run([&](Group& world) {
      world.barrier();
      // What exit() does not destroy: a work that is destroyed waits for its end.
      static auto &data = *new std::vector<int>(500'000, 1), &few = *new std::vector<int>(10);
      static auto& works = *new std::vector<Work>;
      const int next = (world.rank() + 1) % 3;
      for (std::uint32_t tag = 0; tag < 3; ++tag)
        works.push_back(world.start(Send{.data = data, .to = next, .tag = tag}));
      for (int i = 0; i < 3000; ++i) works.push_back(world.start(Send{.data = few, .to = next, .tag = 5}));
      works.push_back(world.start(Send{.data = data, .to = world.rank(), .tag = 4}));
      std::this_thread::sleep_for(world.rank() * std::chrono::milliseconds(delay_ms));
      return 0;
    }),
                Each(0));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 50s) << "their calls have 60 s";
  }
}

TEST(Life, ALargeMessageForARankThatLeavesIsAnErrorOfThatMessageOnly) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    Group others = world.split(world.rank() == 1 ? 1 : 0);
    std::vector<int> data(500'000, 1), answer(500'000);
    if (world.rank() == 1) {
      lives.wait_for("sent");
      return 0;
    }
    if (world.rank() == 0) {
      Work sent = world.isend(data, 1);
      lives.mark("sent");
      const Outcome outcome = outcome_of([&] { sent.wait(); });
      if (outcome.kind != Kind::peer_lost) return wrong_status;
      world.send(data, 2);
      return status(is_well(others));
    }
    world.recv(answer, 0);
    return status(is_all(answer, 1) && is_well(others));
  }),
              Each(0));
}

TEST(Life, ExitWaitsForWhatWasStarted) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    // What exit() does not destroy: works, and the memory that they use.
    static auto &data = *new std::vector<int>(50'000, 1), &message = *new std::vector<int>(50'000, 5);
    std::vector<int> got(50'000);
    if (world.rank() == 0) {
      new Work(world.start(AllReduce{.data = data}));
      new Work(world.isend(message, 1));
      lives.mark("started");
      return 0;  // and exit()
    }
    lives.wait_for("started");
    usleep(50'000);
    world.all_reduce(data);
    if (world.rank() == 1) world.recv(got, 0);
    return status(is_all(data, 3) && (world.rank() != 1 || is_all(got, 5)));
  }),
              Each(0));
}

TEST(Life, OfARankThatExitsEarlyTheOthersHearThatItLeft) {
  RankLives lives(3);
  const auto statuses = lives.run([](Group& world) {
    if (world.rank() == 0) return 3;
    const Outcome outcome = outcome_of([&] { static_cast<void>(is_well(world)); });
    return status(outcome.kind == Kind::peer_lost && outcome.text.find("left the job") != std::string::npos);
  });
  EXPECT_EQ(statuses, (std::vector<int>{3, 0, 0}));
}

TEST(Life, ThreadsInsideCallsStayThereWhenTheProcessExits) {
  RankLives lives(2);
  EXPECT_THAT(lives.run([](Group& world) {
    static Group& own = *new Group(world.split(world.rank()));
    static Group& idle = *new Group(world.split(0));
    static std::atomic<int> turns = 0;
    static auto& never = *new std::vector<int>(3);
    std::thread([] { idle.recv(never, 1 - idle.rank(), {.tag = never_tag}); }).detach();
    std::thread([] {
      while (true) {
        own.barrier();  // one of them is refused, because the process has left
        ++turns;
      }
    }).detach();
    while (turns < 3) usleep(1000);
    return status(is_well(world));
  }),
              Each(0));
}

TEST(Life, ACancelledThreadEndsAfterItsCall) {
  RankLives lives(2);
  EXPECT_THAT(lives.run([&](Group& world) {
    static std::vector<int> data(3);
    static Group* group = &world;
    if (world.rank() == 1) {
      lives.wait_for("cancelled");
      std::vector<int> message(3, 4);
      world.send(message, 0, {.tag = 5});
      return status(is_well(world));
    }
    pthread_t thread{};
    const auto receive = [](void*) -> void* {
      group->recv(data, 1, {.tag = 5});
      pthread_testcancel();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, receive, nullptr) != 0) return wrong_status;
    usleep(50'000);  // it may be cancelled before it waits: that has to work as well
    pthread_cancel(thread);
    lives.mark("cancelled");
    void* result = nullptr;
    pthread_join(thread, &result);
    return status(result == PTHREAD_CANCELED && is_well(world));
  }),
              testing::Each(0));
}

}  // namespace
}  // namespace tutti::contract
