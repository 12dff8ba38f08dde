// loss.cpp: how ranks learn of a dead rank.
// SPDX-License-Identifier: Apache-2.0
//
// The ranks that are linked to the dead rank on the control network accuse it, and flood the accusation. The lowest
// living rank decides by the library's own rule (control/verdicts.hpp) and floods its decision, on which all ranks act.
#include "sim/loss.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "control/control.hpp"
#include "control/links.hpp"
#include "control/verdicts.hpp"

namespace tutti::sim {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
TimePoint time_point(double at) {
  return TimePoint{} + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(at));
}

class Flood {
 public:
  explicit Flood(const Cluster& cluster) : cluster_(cluster), heard_(static_cast<std::size_t>(cluster.ranks), never) {
    const std::set<int> unusable{cluster.dead};
    for (int rank = 0; rank < cluster.ranks; ++rank) {
      const std::set<int> peers =
          rank == cluster.dead ? std::set<int>{} : control::wanted_links(rank, cluster.ranks, unusable);
      links_.emplace_back(peers.begin(), peers.end());
    }
  }

  /// When each rank has heard what these ranks know from these times on.
  const std::vector<double>& spread(const std::vector<std::pair<double, int>>& origins) {
    std::fill(heard_.begin(), heard_.end(), never);
    std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> next;
    for (const auto& origin : origins) next.push(origin);
    while (!next.empty()) {
      const auto [time, rank] = next.top();
      next.pop();
      if (heard_[static_cast<std::size_t>(rank)] <= time) continue;
      heard_[static_cast<std::size_t>(rank)] = time;
      double sent = time;  // it forwards the message over one link after the other
      for (const int peer : links_[static_cast<std::size_t>(rank)]) {
        sent += cluster_.speed.overhead;
        const double there = sent + latency(rank, peer) + cluster_.speed.overhead;
        if (there < heard_[static_cast<std::size_t>(peer)]) next.emplace(there, peer);
      }
    }
    return heard_;
  }

  [[nodiscard]] double latency(int a, int b) const {
    return cluster_.host_of(a) == cluster_.host_of(b) ? cluster_.speed.inside.latency : cluster_.speed.between.latency;
  }

 private:
  const Cluster& cluster_;
  std::vector<std::vector<int>> links_;
  std::vector<double> heard_;
};

// When the decider, which receives the first accusation at `heard`, decides.
double decision_time(int decider, int accuser, const Cluster& cluster, double heard) {
  control::Verdicts verdicts(decider, cluster.ranks, {});
  verdicts.suspect(time_point(heard), accuser, {.accused = cluster.dead, .reason = "its connection was closed"});
  TimePoint now = time_point(heard);
  for (int looks = 0; looks < 100 && !verdicts.decide(now); ++looks) now = verdicts.next_timer(now);
  return seconds(now - TimePoint{});
}

}  // namespace

Spread spread_of_loss(const Cluster& cluster, Death death) {
  Spread spread;
  if (cluster.ranks < 2) return spread;
  Flood flood(cluster);
  std::vector<std::pair<double, int>> accusers;
  for (const int linked : control::wanted_links(cluster.dead, cluster.ranks, {})) {
    const double notices =
        death == Death::silent ? seconds(control::ControlOptions{}.silence) : flood.latency(cluster.dead, linked);
    accusers.emplace_back(notices, linked);
  }
  std::sort(accusers.begin(), accusers.end());
  spread.noticed = accusers.front().first;
  const int decider = cluster.dead == 0 ? 1 : 0;
  const double heard = flood.spread(accusers)[static_cast<std::size_t>(decider)];
  spread.decided = decision_time(decider, accusers.front().second, cluster, heard);
  const std::vector<double>& known = flood.spread({{spread.decided, decider}});
  for (int rank = 0; rank < cluster.ranks; ++rank) {
    if (rank != cluster.dead) spread.everyone = std::max(spread.everyone, known[static_cast<std::size_t>(rank)]);
  }
  return spread;
}

}  // namespace tutti::sim
