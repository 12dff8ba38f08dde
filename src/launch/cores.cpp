// cores.cpp: counts, assigns and describes processors.
// SPDX-License-Identifier: Apache-2.0
#include "launch/cores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "launch/options.hpp"

namespace tutti::launch {

int usable_processors() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof(processors), &processors) == 0) return std::max(1, CPU_COUNT(&processors));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));  // more than a cpu_set_t holds
}

std::vector<cpu_set_t> deal_cores(const std::vector<cpu_set_t>& cores, int ranks) {
  const int count = static_cast<int>(cores.size());
  if (ranks > count)
    throw UsageError(
        fmt::format("--bind core: {} ranks, but only {} core{} to bind them to; start fewer, or leave out --bind",
                    ranks, count, count == 1 ? "" : "s"));
  std::vector<cpu_set_t> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    cpu_set_t share;
    CPU_ZERO(&share);
    for (int core = rank * count / ranks; core < (rank + 1) * count / ranks; ++core)
      CPU_OR(&share, &share, &cores[static_cast<std::size_t>(core)]);
    shares.push_back(share);
  }
  return shares;
}

std::string describe(const cpu_set_t& processors) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &processors)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &processors)) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
    first = last;
  }
  return text;
}

}  // namespace tutti::launch
