// cores.hpp: which ranks of a host have a core, where there are fewer cores than ranks.
// SPDX-License-Identifier: Apache-2.0
//
// A rank keeps its core as long as it has something to do. Then the rank that has waited longest gets it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/cluster.hpp"

namespace tutti::sim {

class Cores {
 public:
  Cores(const Cluster& cluster, int hosts) : cluster_(cluster), shared_(cluster.shares_cores()) {
    if (shared_) hosts_.assign(static_cast<std::size_t>(hosts), {.free = cluster.cores});
  }

  struct Grant {
    std::uint32_t rank = 0;
    double begin = 0;
  };
  /// When the rank may begin, or nothing: then release() will name it.
  std::optional<Grant> ask(std::uint32_t rank, double now) {
    if (!shared_) return Grant{rank, now};
    Host& host = host_of(rank);
    const Grant wanted{rank, now + cluster_.wake};
    if (host.free == 0) {
      host.waiting.push_back(wanted);
      return std::nullopt;
    }
    --host.free;
    return wanted;
  }
  /// The rank has nothing more to do. Who gets its core, if anybody waits.
  std::optional<Grant> release(std::uint32_t rank, double now) {
    if (!shared_) return std::nullopt;
    Host& host = host_of(rank);
    if (host.waiting.empty()) {
      ++host.free;
      return std::nullopt;
    }
    Grant next = host.waiting.front();
    host.waiting.pop_front();
    next.begin = std::max(next.begin, now);  // it may have woken up while it waited
    return next;
  }

 private:
  struct Host {
    int free = 0;
    std::deque<Grant> waiting{};
  };
  Host& host_of(std::uint32_t rank) { return hosts_[rank / static_cast<std::uint32_t>(cluster_.ranks_per_host)]; }

  const Cluster& cluster_;
  bool shared_;
  std::vector<Host> hosts_;
};

}  // namespace tutti::sim
