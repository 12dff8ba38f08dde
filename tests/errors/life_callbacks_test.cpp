// life_callbacks_test.cpp: a function given to Work::then may throw, call, fork, end its thread or the process.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <tutti/await.hpp>

#include "outcomes.hpp"
#include "rank_lives.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using Kind = Outcome::Kind;

// Who notices that the call has ended: the thread that waits, or, where none does, the service thread.
enum class Caller { waits, service };

int as_status(bool is_right) { return is_right ? 0 : wrong_status; }

class Callbacks : public testing::TestWithParam<Caller> {
 protected:
  static bool is_well(Group& world) {
    std::vector<int> data(1000, 1);
    world.all_reduce(data);
    return data[0] == world.size() && data[999] == world.size();
  }

  // A call that cannot have ended before it has its callback: rank 0 enters it last.
  struct Started {
    std::vector<int> data = std::vector<int>(1000, 1);
    Work work;
  };
  static void start(Started& started, Group& world, const RankLives& lives, std::function<void()> then) {
    if (world.rank() == 0) {
      for (int rank = 1; rank < world.size(); ++rank) lives.wait_for(fmt::format("ready-{}", rank));
      world.all_reduce(started.data);
      return then();
    }
    started.work = world.start(AllReduce{.data = started.data});
    started.work.then([then](const std::exception_ptr&) { then(); });
    lives.mark(fmt::format("ready-{}", world.rank()));
  }
  static void finish(Started& started, const std::atomic<bool>& called) {
    if (!started.work.valid()) return;
    while (GetParam() == Caller::service && !called) usleep(1000);
    started.work.wait();
  }
};
INSTANTIATE_TEST_SUITE_P(On, Callbacks, testing::Values(Caller::waits, Caller::service),
                         [](const auto& where) { return where.param == Caller::waits ? "waiter" : "service"; });

TEST_P(Callbacks, MayThrowAndTheGroupGoesOn) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    Started started;
    std::atomic<bool> called = false;
    try {
      start(started, world, lives, [&] {
        called = true;
        throw std::runtime_error("of the callback");
      });
    } catch (const std::runtime_error&) {  // rank 0 calls it itself
    }
    finish(started, called);
    return as_status(called && started.data[999] == 3 && is_well(world));
  }),
              Each(0));
}

TEST_P(Callbacks, MayCallOnAnotherGroup) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    Group other = world.split(0);
    Started started;
    std::atomic<bool> called = false, is_right = false;
    start(started, world, lives, [&] {
      is_right = is_well(other);
      called = true;
    });
    finish(started, called);
    return as_status(is_right && is_well(world));
  }),
              Each(0));
}

TEST_P(Callbacks, MayForkAndTheChildIsDeadToTheJob) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    Started started;
    std::atomic<bool> called = false, is_right = false;
    static pid_t parent = 0;
    parent = getpid();
    const auto fork_some = [&] {
      is_right = true;
      for (const int way : {0, 1, 2}) {
        const pid_t child = fork();
        if (child == 0 && way == 0) _exit(0);
        if (child == 0 && way == 1) std::exit(0);
        if (child == 0) return;  // into the library, which must not go on there
        if (RankLives::status_of(child) != 0) is_right = false;
      }
      called = true;
    };
    try {
      start(started, world, lives, fork_some);
      if (getpid() == parent) finish(started, called);
    } catch (const InvalidArgument& error) {  // the child of a thread that waits hears it there
      return getpid() != parent ? 0 : wrong_status;
    }
    if (getpid() != parent) return as_status(outcome_of([&] { world.barrier(); }).kind == Kind::invalid_argument);
    return as_status(is_right && is_well(world));
  }),
              Each(0));
}

TEST_P(Callbacks, MayEndTheProcess) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    Started started;
    const std::atomic<bool> never = false;
    start(started, world, lives, [&world] {
      if (world.rank() != 0) std::exit(0);
    });
    finish(started, never);
    return as_status(world.rank() == 0 && started.data[999] == 3);
  }),
              Each(0));
}

TEST_P(Callbacks, MayEndTheirThread) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    static Started* started = new Started;
    static std::atomic<bool> called = false;
    start(*started, world, lives, [&world] {
      called = true;
      if (world.rank() != 0) pthread_exit(nullptr);
    });
    if (world.rank() != 0) {
      pthread_t thread{};
      const auto wait = [](void*) -> void* {
        finish(*started, called);
        return nullptr;
      };
      if (pthread_create(&thread, nullptr, wait, nullptr) != 0) return wrong_status;
      pthread_join(thread, nullptr);
    }
    return as_status(called && is_well(world));
  }),
              Each(0));
}

#if defined(__cpp_impl_coroutine)
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::_Exit(wrong_status); }
  };
};

Detached reduce_and_drop(Group last, const RankLives& lives, std::atomic<bool>& is_right) {
  std::vector<int> data(1000, 1);
  Work work = last.start(AllReduce{.data = data});
  lives.mark(fmt::format("ready-{}", last.rank()));
  co_await work;
  is_right = data[999] == last.size();
}

// The coroutine goes on, on the thread that makes progress, and drops the only handle of the job: the rank leaves there.
TEST(Coroutine, MayDropTheLastHandleOnTheProgressThread) {
  for (const bool is_patient : {true, false}) {  // whether the process ends before the rank has left
    RankLives lives(3);
    EXPECT_THAT(lives.run([&](Group& world) {
      static std::atomic<bool> is_right = false;
      const int rank = world.rank();
      Group last = std::exchange(world, Group());
      if (rank == 0) {
        for (const int other : {1, 2}) lives.wait_for(fmt::format("ready-{}", other));
        std::vector<int> data(1000, 1);
        last.all_reduce(data);
        usleep(50'000);  // it is there for some time, and would see the others' loss
        return as_status(data[999] == 3 && outcome_of([&] { last = Group(); }).kind == Kind::fine);
      }
      reduce_and_drop(std::move(last), lives, is_right);
      const auto end = std::chrono::steady_clock::now() + 40s;
      while (!is_right && std::chrono::steady_clock::now() < end) usleep(1000);
      if (is_patient) usleep(200'000);
      return as_status(is_right);
    }),
                Each(0));
  }
}
#endif

}  // namespace
}  // namespace tutti::contract
