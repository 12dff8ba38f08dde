// steps.hpp: the protocol: which round may be left, answered, or taken now, and which flag says so.
// SPDX-License-Identifier: Apache-2.0
//
// A body goes through its rounds; in each, a rank *leaves* its piece in its slot and *takes* what it needs out of the others' slots.
// Or it *answers*: it replaces, in the others' slots, what they left for it, and they take the answers out of their own. Then the
// lines of a slot end where they are written next, and half as many of them travel.
// Two ranks that exchange pieces *cross*, in slots kept for it: every other time, each leaves its piece in the other's, whose lines it
// has read the time before and still has in its cache. Invariants:
//   1. a slot or door is written only when every peer has answered, or its `taken` has reached, what it held before;
//   2. a rank leaves round r of a body only after it took round r−slots, and round 0 only after its earlier bodies ended;
//   3. a peer's piece is read, or answered, only while the flag equals the round's stamp: then by 1 it stays until this rank has
//      answered or taken it;
//   4. the other may cross while this rank takes part in something else, or not at all; then it leaves round 0 only, as they never
//      meet. So a rank that crosses counts with round 0 of every body, and after bodies that it left out or gave up, with anything.
// No deadlock: of all rounds that any rank has yet to leave, answer or take, the earliest can always go on.
//
// Templated on the atomics, so that a test can run the very same code through every interleaving.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/flags.hpp"

namespace tutti::shared {

/// Which body.
struct RunNumber {
  Stamp first = 0;         // stamp of round 0
  std::uint64_t call = 0;  // that it belongs to
  std::uint64_t turn = 0;  // decides which door, and which slot comes first
};

/// One body, as the flags see it.
struct Run {
  std::uint64_t span = 1;  // stamps set aside for it: the same on all ranks, at least their numbers of rounds
  std::int64_t rounds = 1;
  bool leaves = true;     // something for the others, in every round
  bool in_slots = true;   // … in the slots; otherwise in the door
  bool hears_all = true;  // reads what every peer left
  bool answers = false;
  bool crosses = false;        // of two ranks that both leave and hear; only the first body of a call
  bool after_meeting = false;  // the second part of a body whose first took one round
};

template <class Policy>
class Steps {
 public:
  using Seat = Flags<Policy>;

  Steps() = default;
  /// `seats[rank]` is this rank's own.
  Steps(int rank, std::vector<Seat*> seats) : rank_(rank), seats_(std::move(seats)) {}

  void begin(const RunNumber& number, const Run& run) {
    number_ = number;
    run_ = run;
    left_ = answered_ = taken_ = 0;
    answer_source_ = take_source_ = 0;
    heard_all_ = true;
    if (!ended_ || number.call - call_ > 1) {
      for (Stamp& stamp : crossed_in_slot_) stamp = number.first - 1;
    }
    call_ = number.call;
    ended_ = false;
    // Whatever bodies were left out before this one: their pieces will not be read here.
    if (own_taken_ != number.first - 1) tell_taken(number.first - 1);
  }

  /// Does all that can be done now; true when the last round is taken.
  template <class Work>
  bool advance(Work& work) {
    moved_ = false;
    for (;;) {
      bool again = leave(work);
      if (run_.answers) again |= answer(work);
      again |= take(work);
      if (taken_ == run_.rounds) return true;
      if (!again) return false;
    }
  }
  /// The same for a body of one round that is not answered: what leave() and take() come to then.
  template <bool in_slots, class Work>
  bool advance_single(Work& work) {
    moved_ = false;
    const int here = door();
    if (left_ == 0) {
      if (!all_took(in_slots ? held_before(0) : in_door_[here])) return false;
      const int place = place_of(0);
      work.leave(0, place);
      if (in_slots && run_.leaves) in_slot_[place % Policy::slots] = number_.first;
      crossed_in_slot_[place % Policy::slots] = in_door_[here] = number_.first;
      seat(rank_).doors[here].stamp.store(number_.first, release);
      left_ = 1;
      moved_ = published_ = true;
    }
    for (; take_source_ < work.take_sources(); ++take_source_) {
      const int peer = work.take_source(take_source_);
      if (seat(peer).doors[here].stamp.load(acquire) != number_.first) return false;
      work.meet(peer, here);
      work.take(0, place_of(0), peer);
      moved_ = true;
    }
    heard_all(0);
    work.finish(0, place_of(0));
    taken_ = 1;
    ended_ = moved_ = published_ = true;
    tell_taken(last());
    return true;
  }
  /// Whether the last advance() came any further.
  [[nodiscard]] bool moved() const { return moved_; }
  /// Whether something was said, since it was asked last, that others may wait for.
  [[nodiscard]] bool take_published() { return std::exchange(published_, false); }

  /// Gives the body up: nothing of it is read any more.
  void abandon() {
    ended_ = false;
    seat(rank_).abandoned.stamps[door()].store(number_.first, release);
    tell_taken(last());
  }

  /// For bodies that read the others' arrays in place: whether everyone is through, and nobody gave up meanwhile (then it
  /// never becomes true). What was read was lent until here.
  bool is_over() {
    if (!all_took(last())) return false;
    Policy::fence();  // what was read in place was read before this look
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      const auto& abandoned = seat(peer).abandoned.stamps;
      if (abandoned[door()].load(acquire) == number_.first) return false;
      if (run_.after_meeting && abandoned[(number_.turn - 1) % Policy::doors].load(acquire) == number_.first - 1)
        return false;
    }
    return true;
  }

  [[nodiscard]] std::int64_t rounds_taken() const { return taken_; }
  [[nodiscard]] Stamp last() const { return number_.first + run_.span - 1; }

  /// Calls `visit(peer)` for those that keep the next step from being made.
  template <class Work, class Visit>
  void visit_awaited(const Work& work, Visit visit) const {
    const bool ended = taken_ == run_.rounds;  // then it waits until all are through
    if (ended || left_ == taken_) {
      const Stamp awaited = ended ? last() : held_before(left_);
      for (int peer = 0; peer < size(); ++peer) {
        if (peer != rank_ && !reached(seat(peer).taken.stamp.load(acquire), awaited)) visit(peer);
      }
    } else if (run_.answers && answered_ == taken_) {
      for (int i = 0; i < work.answer_sources(); ++i) {
        if (!is_left(work.answer_source(i), answered_)) visit(work.answer_source(i));
      }
    } else {
      for (int i = 0; i < work.take_sources(); ++i) {
        const int peer = work.take_source(i);
        if (work.expects(peer, taken_) && !is_ready(peer, taken_)) visit(peer);
      }
    }
  }

  /// Where a piece lies: in one of its rank's slots, or, for those who cross, in the next as many, or in the other's.
  [[nodiscard]] static int place_of(std::uint64_t turn, std::int64_t round, bool crosses) {
    const std::uint64_t half_way = Policy::slots / 2;  // there the next body starts
    const std::uint64_t at = turn * half_way + static_cast<std::uint64_t>(round);
    return static_cast<int>(crosses ? Policy::slots + at % (2 * Policy::slots) : at % Policy::slots);
  }
  static constexpr int places = 3 * Policy::slots;
  [[nodiscard]] int door() const { return static_cast<int>(number_.turn % Policy::doors); }
  [[nodiscard]] typename Seat::Door& door_of(int rank) const { return seat(rank).doors[door()]; }

 private:
  static constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;

  [[nodiscard]] int size() const { return static_cast<int>(seats_.size()); }
  [[nodiscard]] Seat& seat(int rank) const { return *seats_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Stamp stamp_of(std::int64_t round) const { return number_.first + static_cast<std::uint64_t>(round); }

  [[nodiscard]] int place_of(std::int64_t round) const { return place_of(number_.turn, round, run_.crosses); }
  [[nodiscard]] int slot_of(std::int64_t round) const { return place_of(round) % Policy::slots; }

  // What was in the places that the round is to be left in.
  [[nodiscard]] Stamp held_before(std::int64_t round) const {
    const Stamp* const held = run_.crosses ? crossed_in_slot_ : in_slot_;
    const Stamp slot = run_.leaves && run_.in_slots ? held[slot_of(round)] : low_taken_;
    const Stamp door_stamp = round == 0 ? in_door_[door()] : low_taken_;
    return reached(slot, door_stamp) ? slot : door_stamp;
  }

  // What has been seen once need not be looked at again: in a steady stream of small calls no line of `taken` is read.
  bool all_took(Stamp stamp) {
    if (reached(low_taken_, stamp)) return true;
    Stamp lowest = stamp + (Stamp{1} << 62);
    for (int i = 0; i < size(); ++i) {
      const int peer = laggard_ + i < size() ? laggard_ + i : laggard_ + i - size();
      if (peer == rank_) continue;
      const Stamp seen = seat(peer).taken.stamp.load(acquire);
      if (!reached(seen, stamp)) {
        laggard_ = peer;
        return false;
      }
      if (reached(lowest, seen)) lowest = seen;
    }
    low_taken_ = lowest;
    return true;
  }

  template <class Work>
  bool leave(Work& work) {
    if (left_ == run_.rounds || left_ == taken_ + Policy::slots) return false;
    if (run_.crosses && left_ > 0 && taken_ == 0) return false;
    if (!all_took(held_before(left_))) return false;
    const int slot = slot_of(left_);
    const Stamp stamp = stamp_of(left_);
    work.leave(left_, place_of(left_));
    if (run_.leaves && run_.in_slots) in_slot_[slot] = stamp;
    if (run_.crosses || left_ == 0) crossed_in_slot_[slot] = stamp;
    if (left_ == 0) {
      in_door_[door()] = stamp;
      seat(rank_).doors[door()].stamp.store(stamp, release);
    } else if (run_.leaves) {
      seat(rank_).posted[slot].stamp.store(stamp, release);
    }
    ++left_;
    moved_ = published_ = true;
    return true;
  }

  [[nodiscard]] bool is_left(int peer, std::int64_t round) const {
    if (round == 0) return seat(peer).doors[door()].stamp.load(acquire) == number_.first;
    return seat(peer).posted[slot_of(round)].stamp.load(acquire) == stamp_of(round);
  }
  [[nodiscard]] bool is_ready(int peer, std::int64_t round) const {
    if (!run_.answers) return is_left(peer, round);
    return seat(peer).answered[slot_of(round)].stamp.load(acquire) == stamp_of(round);
  }

  // Invariant 2, read from the other side.
  void heard_all(std::int64_t round) {
    const Stamp implied = round < Policy::slots ? number_.first - 1 : stamp_of(round - Policy::slots);
    if (run_.hears_all && reached(implied, low_taken_)) low_taken_ = implied;
  }

  template <class Work>
  bool answer(Work& work) {
    if (answered_ == left_) return false;
    for (; answer_source_ < work.answer_sources(); ++answer_source_) {
      const int peer = work.answer_source(answer_source_);
      if (!is_left(peer, answered_)) return false;
      if (answered_ == 0) work.meet(peer, door());
      moved_ = true;
    }
    heard_all(answered_);
    work.answer(answered_, place_of(answered_));
    seat(rank_).answered[slot_of(answered_)].stamp.store(stamp_of(answered_), release);
    answer_source_ = 0;
    ++answered_;
    moved_ = published_ = true;
    return true;
  }

  template <class Work>
  bool take(Work& work) {
    if (taken_ == (run_.answers ? answered_ : left_)) return false;
    for (; take_source_ < work.take_sources(); ++take_source_) {
      const int peer = work.take_source(take_source_);
      if (!work.expects(peer, taken_)) {
        heard_all_ = false;
        continue;
      }
      if (!is_ready(peer, taken_)) return false;
      if (taken_ == 0 && !run_.answers) work.meet(peer, door());
      work.take(taken_, place_of(taken_), peer);
      moved_ = true;
    }
    if (!run_.answers && heard_all_) heard_all(taken_);
    // Once all have answered, nobody but this rank looks at what it left.
    if (run_.answers && work.take_sources() == size() - 1) in_slot_[slot_of(taken_)] = low_taken_;
    work.finish(taken_, place_of(taken_));
    heard_all_ = true;
    take_source_ = 0;
    ++taken_;
    ended_ = taken_ == run_.rounds;
    tell_taken(taken_ == run_.rounds ? last() : stamp_of(taken_ - 1));
    moved_ = published_ = true;
    return true;
  }

  void tell_taken(Stamp stamp) {
    own_taken_ = stamp;
    seat(rank_).taken.stamp.store(stamp, release);
  }

  int rank_ = 0;
  std::vector<Seat*> seats_;
  RunNumber number_;
  Run run_;
  std::int64_t left_ = 0, answered_ = 0, taken_ = 0;  // rounds
  int answer_source_ = 0, take_source_ = 0;           // how far this round has come through its sources
  bool heard_all_ = true;                             // no source was passed over in this round
  bool moved_ = false, published_ = false;
  // Across bodies. Stamps of what was left there last; of what crosses, by this rank or perhaps by the other.
  Stamp in_slot_[Policy::slots] = {}, in_door_[Policy::doors] = {}, crossed_in_slot_[Policy::slots] = {};
  Stamp low_taken_ = 0;  // every peer's `taken` has reached this
  Stamp own_taken_ = 0;
  std::uint64_t call_ = 0;  // of the last body
  bool ended_ = false;      // … which was not given up
  int laggard_ = 0;         // the peer that was not yet there when last looked
};

}  // namespace tutti::shared
