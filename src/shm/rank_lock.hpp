// rank_lock.hpp: the lock of one rank, which is nearly always free.
// SPDX-License-Identifier: Apache-2.0
//
// A call of a few bytes holds it for less than 200 ns, so it is inlined. Unlocking is a full fence: a rank that has
// published something needs no other fence before it reads who sleeps (doorbell.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/atomics.hpp"

namespace tutti::shm {

class RankLock {
 public:
  RankLock() = default;
  RankLock(const RankLock&) = delete;
  RankLock& operator=(const RankLock&) = delete;

  [[nodiscard]] bool try_lock() {
    std::uint32_t seen = free;
    return state_.compare_exchange_strong(seen, held, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  /// Loads after it are not done before stores ahead of it can be seen.
  void unlock() {
#if !defined(__x86_64__)  // there an exchange is a fence
    MachineAtomics::fence();
#endif
    if (state_.exchange(free, std::memory_order_seq_cst) == awaited) [[unlikely]]
      state_.notify_one();
  }
  /// In a forked child, where no other thread holds it, whatever it looks like.
  void reset_in_child() { state_.store(free, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t free = 0, held = 1, awaited = 2;

  // A thread that has waited cannot know whether another one still waits, so it leaves the lock in the state `awaited`.
  void wait() {
    while (state_.exchange(awaited, std::memory_order_acquire) != free) state_.wait(awaited, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> state_{free};
};

}  // namespace tutti::shm
