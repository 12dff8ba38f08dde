// links.cpp: a circulant graph that routes around ranks that are gone.
// SPDX-License-Identifier: Apache-2.0
#include "control/links.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tutti::control {

namespace {

int wrapped(int rank, int size) { return (rank % size + size) % size; }

int distance(int a, int b, int size) {
  const int ahead = wrapped(b - a, size);
  return std::min(ahead, size - ahead);
}

}  // namespace

std::set<int> wanted_links(int rank, int size, const std::set<int>& unusable, int reach) {
  std::set<int> wanted;
  for (const int direction : {1, -1}) {
    for (int step = 1; step < size && step <= reach; step *= 2) {
      int peer = wrapped(rank + direction * step, size);
      while (peer != rank && unusable.contains(peer)) peer = wrapped(peer + direction, size);
      if (peer != rank) wanted.insert(peer);
    }
  }
  return wanted;
}

std::vector<int> Links::peers() const {
  std::vector<int> all;
  for (const auto& [peer, use] : uses_) all.push_back(peer);
  return all;
}

bool Links::add(int peer, TimePoint now) { return uses_.try_emplace(peer, Use{.sent = now, .heard = now}).second; }

void Links::ban(int peer) {
  unusable_.insert(peer);
  uses_.erase(peer);
}

std::set<int> Links::nearest() const { return wanted_links(rank_, size_, unusable_, 1); }

void Links::sent(int peer, TimePoint now) {
  if (const auto use = uses_.find(peer); use != uses_.end()) use->second.sent = now;
}

void Links::heard(int peer, TimePoint now) {
  const auto use = uses_.find(peer);
  if (use == uses_.end()) return;
  use->second.heard = now;
  use->second.spoke = true;
}

int Links::next_hop(int to, int came_from) const {
  if (uses_.contains(to)) return to;
  int best = -1;
  for (const auto& [peer, use] : uses_) {
    if (peer == came_from) continue;
    if (best < 0 || distance(peer, to, size_) < distance(best, to, size_)) best = peer;
  }
  return best;
}

int Links::hops_max() const { return 8 + 2 * std::bit_width(static_cast<unsigned>(size_)); }

}  // namespace tutti::control
