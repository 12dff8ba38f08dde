// store_handover.hpp: how the job's store gets from a keeper that leaves to another rank: nothing lost, nothing twice.
// SPDX-License-Identifier: Apache-2.0
//
// A keeper that leaves answers nobody from then on; requests are repeated until they are answered. It offers what it keeps to
// a *successor*, the lowest rank above itself that stays as far as it knows; the successor fetches it part by part, and
// has the store when it has fetched the last one. Then the old keeper floods who keeps the store (StoreMoved), which is
// confirmed as all floods of a rank that leaves; it does not leave before.
//
//  1. A rank takes the store only before it leaves, and its goodbye tells whether it has all of it. The keeper chooses another
//     successor only when one says goodbye without the store, or is lost. So at most one living rank has the whole store
//     besides the old keeper, which does not change it any more: if that one is lost before it could name the next, the rank that
//     has everything names itself.
//  2. A rank that has the store stays until it has handed it on, or nobody is left above it.
//  3. The store moves to higher ranks only: those below a keeper have left or are lost. So a rank keeps it once at most, and of
//     two floods that name a keeper the higher rank is the later one.
//  4. A keeper that has left has handed the store to another, even if this rank has not heard to which: its flood is on the way.
//
// If the keeper dies before the successor has everything, the store is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <tutti/clock.hpp>

#include "control/message.hpp"

namespace tutti::control {

class StoreHandover {
 public:
  struct Outside {
    std::function<void(int to, RoutedBody body)> send;
    std::function<void(StoreMoved moved)> flood;
    // The lowest rank above that is not known to leave, or lost; −1 if none.
    std::function<int(int above)> next_staying;
  };
  StoreHandover(Duration retry, Outside outside) : retry_(retry), outside_(std::move(outside)) {}

  // The keeper leaves.
  void give(TimePoint now, int keeper, std::vector<std::byte> store);
  void on_fetched(TimePoint now, int from, const StoreFetched& message);
  // A rank has said goodbye without the store, or is lost.
  void remove_successor(TimePoint now, int rank);
  [[nodiscard]] bool gives() const { return successor_ >= 0; }

  // The successor. After a part that is new, look at it if it was the last one, and then fetch on.
  void on_offered(int from, const StoreOffered& message);
  [[nodiscard]] bool on_part(int from, const StorePart& message);
  void fetch() { outside_.send(giver_, StoreFetched{taken_}); }
  [[nodiscard]] int giver() const { return giver_; }
  [[nodiscard]] bool has_all() const { return giver_ >= 0 && taken_ == parts_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // Forgets what has arrived.
  void drop();

  bool poll(TimePoint now);
  [[nodiscard]] TimePoint next_timer() const { return gives() ? offer_at_ : TimePoint::max(); }

 private:
  void offer(TimePoint now);
  [[nodiscard]] std::uint32_t part_count() const;

  Duration retry_;
  Outside outside_;
  std::vector<std::byte> bytes_;  // the keeper's store, or what has arrived of it
  int successor_ = -1;
  TimePoint offer_at_{};
  int giver_ = -1;
  std::uint32_t parts_ = 0, taken_ = 0;
};

}  // namespace tutti::control
