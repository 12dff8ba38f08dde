// doorbell_test.cpp: sleeping and waking, between threads and processes.
// SPDX-License-Identifier: Apache-2.0
#include "shm/doorbell.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "shm/local_peers.hpp"
#include "tests/support/child_process.hpp"

namespace tutti::shm {
namespace {

using namespace std::chrono_literals;

TimePoint in(Duration time) { return deadline_after(std::chrono::steady_clock::now(), time); }

std::shared_ptr<Arena> make_arena() { return std::make_shared<Arena>(ArenaOptions{.bytes = 1u << 20}); }

TEST(Doorbell, sleep_ends_at_its_deadline_and_ends_the_announcement) {
  const auto arena = make_arena();
  Doorbell doorbell(arena->header());
  const auto begin = std::chrono::steady_clock::now();
  doorbell.prepare();
  EXPECT_EQ(arena->header().asleep, 1U);
  doorbell.sleep(in(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_EQ(arena->header().asleep, 0U);
  doorbell.prepare();
  doorbell.sleep(TimePoint{});  // long ago
  doorbell.prepare();
  doorbell.leave();
  EXPECT_EQ(arena->header().asleep, 0U);
}

TEST(Doorbell, a_notification_after_prepare_is_not_slept_through) {
  const auto arena = make_arena();
  Doorbell doorbell(arena->header());
  doorbell.prepare();
  notify(arena->header());
  const auto begin = std::chrono::steady_clock::now();
  doorbell.sleep(in(60s));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(Doorbell, a_sleeper_is_notified_once) {
  const auto arena = make_arena();
  Doorbell doorbell(arena->header());
  doorbell.prepare();
  for (int i = 0; i < 3; ++i) notify(arena->header());
  EXPECT_EQ(arena->header().doorbell, 1U);
  doorbell.sleep(in(60s));
  doorbell.prepare();
  notify(arena->header());
  EXPECT_EQ(arena->header().doorbell, 2U);
  doorbell.leave();
}

TEST(Doorbell, a_rank_that_is_awake_is_not_notified) {
  const auto arena = make_arena();
  notify(arena->header());
  EXPECT_EQ(arena->header().doorbell, 0U);
}

// The sleeper's half of a ping-pong over a counter: sleeps whenever it has nothing to do. False after 20 s of that.
bool await(Doorbell& doorbell, const std::atomic<std::uint32_t>& word, std::uint32_t wanted) {
  const TimePoint deadline = in(20s);
  while (word.load(std::memory_order_acquire) != wanted) {
    doorbell.prepare();
    if (word.load(std::memory_order_acquire) == wanted) {
      doorbell.leave();
      return true;
    }
    doorbell.sleep(deadline);
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
  return true;
}

constexpr std::uint32_t rounds = 3000;

// Two words in the first one's arena. A lost wake-up lasts until the deadline.
bool play(int rank, ArenaHeader& own, ArenaHeader& other, std::array<std::atomic<std::uint32_t>*, 2> words) {
  Doorbell doorbell(own);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    if (rank == 1 && !await(doorbell, *words[0], round)) return false;
    words[static_cast<std::size_t>(rank)]->store(round, std::memory_order_release);
    notify(other);
    if (rank == 0 && !await(doorbell, *words[1], round)) return false;
  }
  return true;
}

TEST(Doorbell, two_threads_that_always_sleep_never_miss_each_other) {
  const auto left = make_arena(), right = make_arena();
  auto* const words = new (left->allocate(256)) std::atomic<std::uint32_t>[64]();
  const std::array both = {&words[0], &words[32]};
  bool right_done = false;
  std::jthread thread([&] { right_done = play(1, right->header(), left->header(), both); });
  EXPECT_TRUE(play(0, left->header(), right->header(), both));
  thread.join();
  EXPECT_TRUE(right_done);
}

TEST(Doorbell, two_processes_that_always_sleep_never_miss_each_other) {
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
    const LocalPeers local_peers(right, 1, {left_address, right->address()});
    if (!local_peers.reaches(0)) return 2;
    line.say(right->address().to_text());
    return play(1, right->header(), local_peers.header(0), words_at(local_peers.at(0, offset, 256))) ? 0 : 1;
  });
  const LocalPeers local_peers(left, 0, {left_address, ArenaAddress::from_text(child.line().hear())});
  ASSERT_TRUE(local_peers.reaches(1)) << local_peers.why_not(1);
  EXPECT_TRUE(play(0, left->header(), local_peers.header(1), words_at(block)));
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace tutti::shm
