// cores.hpp: which ranks of a host have a core, where there are fewer cores than ranks.
// SPDX-License-Identifier: Apache-2.0
//
// A rank keeps its core as long as it has something to do. Then it yields, and the rank that has waited longest gets the
// core. A rank that finds nothing to do in a few turns goes to sleep (Runtime::poll_or_sleep): while others have work the
// turns take time, and work that comes up finds it awake; otherwise it sleeps at once, and has to be woken.
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
  /// `ranks`: those that are simulated.
  Cores(const Cluster& cluster, int ranks) : cluster_(cluster), shared_(cluster.shares_cores()) {
    if (!shared_) return;
    const int hosts = (ranks + cluster.ranks_per_host - 1) / cluster.ranks_per_host;
    hosts_.assign(static_cast<std::size_t>(hosts), {.free = cluster.cores});
    awake_until_.assign(static_cast<std::size_t>(ranks), 0);
  }

  struct Grant {
    std::uint32_t rank = 0;
    double begin = 0;
  };
  /// When the rank may begin, or nothing: then release() will name it.
  std::optional<Grant> ask(std::uint32_t rank, double now) {
    if (!shared_) return Grant{rank, now};
    Host& host = host_of(rank);
    const Grant wanted{rank, now <= awake_until_[rank] ? now : now + cluster_.wake};
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
      awake_until_[rank] = now;
      return std::nullopt;
    }
    awake_until_[rank] = now + turns * cluster_.speed.overhead;
    Grant next = host.waiting.front();
    host.waiting.pop_front();
    next.begin = std::max(next.begin, now);  // it may have woken up while it waited
    return next;
  }

 private:
  static constexpr int turns = 4;  // of the others, a message each, before a rank sleeps

  struct Host {
    int free = 0;
    std::deque<Grant> waiting{};
  };
  Host& host_of(std::uint32_t rank) { return hosts_[rank / static_cast<std::uint32_t>(cluster_.ranks_per_host)]; }

  const Cluster& cluster_;
  bool shared_;
  std::vector<Host> hosts_;
  std::vector<double> awake_until_;
};

}  // namespace tutti::sim
