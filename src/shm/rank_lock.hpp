// rank_lock.hpp: the lock of one rank, which is nearly always free.
// SPDX-License-Identifier: Apache-2.0
//
// A call of a few bytes takes it and gives it back within 200 ns: it is inlined, and giving it back is a full fence, so that
// whoever has published something need not make another one before looking who sleeps (doorbell.hpp).
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

 private:
  static constexpr std::uint32_t free = 0, held = 1, awaited = 2;

  // Whoever has waited cannot know that nobody else does.
  void wait() {
    while (state_.exchange(awaited, std::memory_order_acquire) != free) state_.wait(awaited, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> state_{free};
};

}  // namespace tutti::shm
