// links.hpp: which ranks keep a control link, and over which of them a message comes closer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::control {

// The ranks 1, 2, 4, … away in both directions; where one of them is not usable, the next usable one beyond it.
std::set<int> wanted_links(int rank, int size, const std::set<int>& unusable);

// The links a rank has, and when each was last used. Peers that cannot be reached directly, for whatever reason, are
// unusable for good.
class Links {
 public:
  Links(int rank, int size) : rank_(rank), size_(size) {}

  struct Use {
    TimePoint sent{};
    TimePoint heard{};
    bool spoke = false;  // anything was heard at all
    Duration lag{};      // the peer says that it may be so late
  };

  [[nodiscard]] bool has(int peer) const { return uses_.contains(peer); }
  [[nodiscard]] bool usable(int peer) const { return peer != rank_ && !unusable_.contains(peer); }
  [[nodiscard]] std::vector<int> peers() const;
  [[nodiscard]] std::map<int, Use>& uses() { return uses_; }
  [[nodiscard]] const std::map<int, Use>& uses() const { return uses_; }

  // A new link, heard of now; false if it was there.
  bool add(int peer, TimePoint now);
  // Never again this peer.
  void ban(int peer);
  // The links that are wanted now and not there.
  [[nodiscard]] std::vector<int> missing() const;
  void sent(int peer, TimePoint now);
  void heard(int peer, TimePoint now);

  // The peer to hand a message for `to` to: itself where there is a link, otherwise the linked peer nearest to it on
  // the ring of ranks, but not the peer it came from. −1 if there is none.
  [[nodiscard]] int next_hop(int to, int came_from) const;
  // Enough for a route around several dead ranks, few enough to end a loop soon.
  [[nodiscard]] int hops_max() const;

 private:
  int rank_, size_;
  std::map<int, Use> uses_;
  std::set<int> unusable_;
};

}  // namespace tutti::control
