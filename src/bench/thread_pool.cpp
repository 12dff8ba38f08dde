// thread_pool.cpp: threads on cores of their own.
// SPDX-License-Identifier: Apache-2.0
#include "bench/thread_pool.hpp"

#include <pthread.h>

#include <thread>

namespace tutti::bench {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void run_on_cores(int threads, const std::function<void(int)>& work) {
  const std::vector<int> cores = allowed_cores();
  std::vector<std::jthread> pool;
  for (int thread = 0; thread < threads; ++thread) {
    pool.emplace_back([&, thread] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores[static_cast<std::size_t>(thread) % cores.size()], &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      work(thread);
    });
  }
}

}  // namespace tutti::bench
