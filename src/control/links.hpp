// links.hpp: which ranks keep a control link, and which link brings a message closer to its destination.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <set>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::control {

// The ranks 1, 2, 4, … up to `reach` away in both directions; where one of them is not usable, the next usable one beyond it.
std::set<int> wanted_links(int rank, int size, const std::set<int>& unusable,
                           int reach = std::numeric_limits<int>::max());

// The links of a rank, and when each was last used. A peer that cannot be reached directly stays unusable.
class Links {
 public:
  Links(int rank, int size) : rank_(rank), size_(size) {}

  struct Use {
    TimePoint sent{};
    TimePoint heard{};
    bool spoke = false;  // anything was heard at all
    Duration lag{};      // the lag that the peer has reported
  };

  [[nodiscard]] bool has(int peer) const { return uses_.contains(peer); }
  [[nodiscard]] bool usable(int peer) const { return peer != rank_ && !unusable_.contains(peer); }
  [[nodiscard]] std::vector<int> peers() const;
  [[nodiscard]] std::map<int, Use>& uses() { return uses_; }
  [[nodiscard]] const std::map<int, Use>& uses() const { return uses_; }

  // Adds a link, heard of now; false if it exists.
  bool add(int peer, TimePoint now);
  // Never uses this peer again.
  void ban(int peer);
  // The links that a rank keeps while it stays.
  [[nodiscard]] std::set<int> wanted() const { return wanted_links(rank_, size_, unusable_); }
  // The next usable rank on each side, which keep the ring of ranks closed; one if it is the same, none if nobody is left.
  [[nodiscard]] std::set<int> nearest() const;
  void sent(int peer, TimePoint now);
  void heard(int peer, TimePoint now);

  // The peer to hand a message for `to` to: itself where there is a link, otherwise the linked peer nearest to it on
  // the ring of ranks, but not the peer it came from. −1 if there is none.
  [[nodiscard]] int next_hop(int to, int came_from) const;
  // Enough for a route around several dead ranks, and small enough to end a loop soon.
  [[nodiscard]] int hops_max() const;

 private:
  int rank_, size_;
  std::map<int, Use> uses_;
  std::set<int> unusable_;
};

}  // namespace tutti::control
