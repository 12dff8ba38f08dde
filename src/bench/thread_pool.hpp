// thread_pool.hpp: threads on cores of their own that do the same thing at the same time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <vector>

namespace tutti::bench {

/// The cores that this process may use.
std::vector<int> allowed_cores();

/// Every thread waits for every other; they spin a while, then let others run.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void arrive() {
    const unsigned round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins > 2000) sched_yield();
    }
  }

 private:
  int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> round_{0};
};

/// Runs `work(thread)` on that many threads, each on a core of its own as far as they go, and returns when all have.
void run_on_cores(int threads, const std::function<void(int)>& work);

}  // namespace tutti::bench
