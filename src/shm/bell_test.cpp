// bell_test.cpp: sleeping and waking, between threads and processes.
// SPDX-License-Identifier: Apache-2.0
#include "shm/bell.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "shm/child_process.hpp"
#include "shm/neighbours.hpp"

namespace tutti::shm {
namespace {

using namespace std::chrono_literals;

TimePoint in(Duration time) { return deadline_after(std::chrono::steady_clock::now(), time); }

std::shared_ptr<Arena> make_arena() { return std::make_shared<Arena>(ArenaOptions{.bytes = 1u << 20}); }

TEST(Bell, sleep_ends_at_its_deadline_and_ends_the_announcement) {
  const auto arena = make_arena();
  Bell bell(arena->header());
  const auto begin = std::chrono::steady_clock::now();
  bell.prepare();
  EXPECT_EQ(arena->header().asleep, 1U);
  bell.sleep(in(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_EQ(arena->header().asleep, 0U);
  bell.prepare();
  bell.sleep(TimePoint{});  // long ago
  bell.prepare();
  bell.leave();
  EXPECT_EQ(arena->header().asleep, 0U);
}

TEST(Bell, a_ring_after_prepare_is_not_slept_through) {
  const auto arena = make_arena();
  Bell bell(arena->header());
  bell.prepare();
  ring(arena->header());
  const auto begin = std::chrono::steady_clock::now();
  bell.sleep(in(60s));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(Bell, nobody_who_is_awake_is_rung) {
  const auto arena = make_arena();
  ring(arena->header());
  EXPECT_EQ(arena->header().bell, 0U);
}

// The sleeper's half of a ping-pong over a counter: sleeps whenever it has nothing to do. False after 20 s of that.
bool await(Bell& bell, const std::atomic<std::uint32_t>& word, std::uint32_t wanted) {
  const TimePoint deadline = in(20s);
  while (word.load(std::memory_order_acquire) != wanted) {
    bell.prepare();
    if (word.load(std::memory_order_acquire) == wanted) {
      bell.leave();
      return true;
    }
    bell.sleep(deadline);
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
  return true;
}

constexpr std::uint32_t rounds = 3000;

// Two words in the first one's arena. A lost wake-up lasts until the deadline.
bool play(int rank, ArenaHeader& own, ArenaHeader& other, std::array<std::atomic<std::uint32_t>*, 2> words) {
  Bell bell(own);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    if (rank == 1 && !await(bell, *words[0], round)) return false;
    words[static_cast<std::size_t>(rank)]->store(round, std::memory_order_release);
    ring(other);
    if (rank == 0 && !await(bell, *words[1], round)) return false;
  }
  return true;
}

TEST(Bell, two_threads_that_always_sleep_never_miss_each_other) {
  const auto left = make_arena(), right = make_arena();
  auto* const words = new (left->allocate(256)) std::atomic<std::uint32_t>[64]();
  const std::array both = {&words[0], &words[32]};
  bool right_done = false;
  std::jthread thread([&] { right_done = play(1, right->header(), left->header(), both); });
  EXPECT_TRUE(play(0, left->header(), right->header(), both));
  thread.join();
  EXPECT_TRUE(right_done);
}

TEST(Bell, two_processes_that_always_sleep_never_miss_each_other) {
  const auto left = make_arena();
  std::byte* const block = left->allocate(256);
  const std::uint64_t offset = left->offset_of(block);
  const ArenaAddress left_address = left->address();
  const auto words_at = [](std::byte* place) {
    auto* const words = reinterpret_cast<std::atomic<std::uint32_t>*>(place);
    return std::array{&words[0], &words[32]};
  };
  ChildProcess child([&](Line& line) {
    const auto right = make_arena();
    const Neighbours neighbours(right, 1, {left_address, right->address()});
    if (!neighbours.reaches(0)) return 2;
    line.say(right->address().to_text());
    return play(1, right->header(), neighbours.header(0), words_at(neighbours.at(0, offset, 256))) ? 0 : 1;
  });
  const Neighbours neighbours(left, 0, {left_address, ArenaAddress::from_text(child.line().hear())});
  ASSERT_TRUE(neighbours.reaches(1)) << neighbours.why_not(1);
  EXPECT_TRUE(play(0, left->header(), neighbours.header(1), words_at(block)));
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace tutti::shm
