// cores.hpp: which ranks of a host have a core, where there are fewer cores than ranks.
// SPDX-License-Identifier: Apache-2.0
//
// A rank keeps its core as long as it has something to do. Then it yields, and the rank that has waited longest for this core
// gets it, after `turn`. If nobody waits, it looks around a few times more (Runtime::poll_or_sleep) and sleeps. Its core then
// is idle; it takes `wake` until an idle core runs a rank. A rank that slept runs on an idle core if its own is in use; one that is
// awake stays where it is, for a while: systems move only those that wait for long, so an idle core takes over who still waits
// for another one after `wake`.
#pragma once

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
    cores_.resize(static_cast<std::size_t>(hosts) * static_cast<std::size_t>(cluster.cores));
    for (int rank = 0; rank < ranks; ++rank) {
      places_.push_back(
          {.core = first_core(rank) + static_cast<std::size_t>(rank % cluster.ranks_per_host % cluster.cores)});
    }
  }

  struct Dispatch {
    std::uint32_t rank = 0;
    double begin = 0;
  };
  /// When the rank may begin, or nothing: then release() will name it.
  std::optional<Dispatch> ask(std::uint32_t rank, double now) {
    if (!shared_) return Dispatch{rank, now};
    Place& place = places_[rank];
    if (cores_[place.core].used && now > place.awake_until) place.core = unused_core(rank);
    Core& core = cores_[place.core];
    if (core.used) {
      core.waiting.push_back(rank);
      return std::nullopt;
    }
    core.used = true;
    return Dispatch{rank, now <= core.idle_from ? now : now + cluster_.wake};
  }
  /// The rank has nothing more to do. Who gets its core, if anybody waits.
  std::optional<Dispatch> release(std::uint32_t rank, double now) {
    if (!shared_) return std::nullopt;
    Place& place = places_[rank];
    Core& core = cores_[place.core];
    if (core.waiting.empty()) {
      core.used = false;
      core.idle_from = place.awake_until = now + cluster_.speed.overhead * patience;
      return std::nullopt;
    }
    place.awake_until = now + cluster_.speed.overhead * turns;
    const Dispatch next = turn_of(core.waiting.front(), now);
    core.waiting.pop_front();
    return next;
  }
  /// When the core of a rank that has released it looks for another rank, unless somebody uses it again.
  [[nodiscard]] std::optional<double> steals_at(std::uint32_t rank) const {
    if (!shared_) return std::nullopt;
    return steals_at(cores_[places_[rank].core]);
  }
  /// That moment has come: the core takes over a rank that waits for another one.
  std::optional<Dispatch> steal(std::uint32_t rank, double now) {
    const std::size_t own = places_[rank].core, first = first_core(static_cast<int>(rank));
    if (cores_[own].used || steals_at(cores_[own]) != now) return std::nullopt;
    for (std::size_t other = first; other < first + static_cast<std::size_t>(cluster_.cores); ++other) {
      if (cores_[other].waiting.empty()) continue;
      const Dispatch next = turn_of(cores_[other].waiting.front(), now);
      cores_[other].waiting.pop_front();
      places_[next.rank].core = own;
      cores_[own].used = true;
      return next;
    }
    return std::nullopt;
  }

 private:
  static constexpr double patience = 1;  // a few looks around and the way to sleep take about as long as a message
  static constexpr double turns = 4;     // of the others, a message each, before a rank sleeps

  struct Core {
    bool used = false;
    double idle_from = 0;
    std::deque<std::uint32_t> waiting{};
  };
  struct Place {
    std::size_t core = 0;
    double awake_until = 0;
  };
  [[nodiscard]] double steals_at(const Core& core) const { return core.idle_from + cluster_.wake; }
  // Who only enters has come from the call before, and had the core for that.
  [[nodiscard]] Dispatch turn_of(std::uint32_t rank, double now) const {
    return {rank, places_[rank].awake_until > 0 ? now + cluster_.turn : now};
  }
  [[nodiscard]] std::size_t first_core(int rank) const {
    return static_cast<std::size_t>(rank / cluster_.ranks_per_host) * static_cast<std::size_t>(cluster_.cores);
  }
  // Of the rank's host, or the one it has.
  [[nodiscard]] std::size_t unused_core(std::uint32_t rank) const {
    const std::size_t first = first_core(static_cast<int>(rank));
    for (std::size_t core = first; core < first + static_cast<std::size_t>(cluster_.cores); ++core) {
      if (!cores_[core].used) return core;
    }
    return places_[rank].core;
  }

  const Cluster& cluster_;
  bool shared_;
  std::vector<Core> cores_;  // of all hosts
  std::vector<Place> places_;
};

}  // namespace tutti::sim
