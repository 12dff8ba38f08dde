// rank_lock_test.cpp: one at a time, and nobody is left waiting.
// SPDX-License-Identifier: Apache-2.0
#include "shm/rank_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tutti::shm {
namespace {

using namespace std::chrono_literals;

TEST(RankLock, LetsOneInAtATimeAndAllOfThemInTheEnd) {
  RankLock lock;
  int inside = 0, rounds = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        const std::lock_guard guard(lock);
        ASSERT_EQ(++inside, 1);
        if (round % 50 == 0) std::this_thread::yield();  // others come to wait
        ++rounds;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rounds, 4 * 5000);
}

TEST(RankLock, IsNotTakenTwice) {
  RankLock lock;
  ASSERT_TRUE(lock.try_lock());
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(RankLock, WakesEveryoneWhoCameToWaitForIt) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    RankLock lock;
    int passed = 0;
    std::vector<std::thread> threads;
    lock.lock();
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const std::lock_guard guard(lock);
        ++passed;
      });
    }
    std::this_thread::sleep_for(1ms);  // most of them sleep by now
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(passed, 3);
  }
}

TEST(RankLock, GoesWithAConditionVariable) {
  RankLock lock;
  std::condition_variable_any changed;
  bool said = false;
  std::thread other([&] {
    const std::lock_guard guard(lock);
    said = true;
    changed.notify_one();
  });
  {
    std::unique_lock guard(lock);
    EXPECT_TRUE(changed.wait_for(guard, 10s, [&] { return said; }));
  }
  other.join();
}

// Of two ranks that each publish something, give back their own lock and look, one at least sees what the other published.
TEST(RankLock, IsAFenceWhenGivenBack) {
  struct alignas(128) Rank {
    RankLock lock;
    alignas(128) std::atomic<int> published{0};
    bool missed = false;
  };
  std::array<Rank, 2> ranks;
  std::barrier meet(2);
  const auto run = [&](std::size_t own) {
    for (int round = 1; round <= 20'000; ++round) {
      ranks[own].lock.lock();
      meet.arrive_and_wait();
      ranks[own].published.store(round, std::memory_order_relaxed);
      ranks[own].lock.unlock();
      ranks[own].missed = ranks[1 - own].published.load(std::memory_order_relaxed) < round;
      meet.arrive_and_wait();
      EXPECT_FALSE(ranks[0].missed && ranks[1].missed) << "in round " << round;
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

}  // namespace
}  // namespace tutti::shm
