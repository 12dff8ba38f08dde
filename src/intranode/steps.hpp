// steps.hpp: the protocol: which round may be published, reduced back or consumed now, and which flag says so.
// SPDX-License-Identifier: Apache-2.0
//
// An execution goes through its rounds. In each round a rank *publishes* its piece in its slot and *consumes* what it needs from the
// others' slots. Some executions *reduce back*: a rank replaces, in the others' slots, what they published for it by the result, and they
// consume the results from their own slots. The owner then still has the lines that it writes next, and half as many lines travel.
// Two ranks that exchange pieces *alternate* between slots kept for it: every other time, each publishes its piece in the other's slot. It
// read that slot's lines the time before and still has them in its cache. Invariants:
//   1. A slot or inline slot is written only when every peer has reduced back what it held before, or its `consumed` has reached that.
//   2. A rank publishes round r of an execution only after it consumed round r−slots, and round 0 only after its earlier executions ended.
//   3. A peer's piece is read or reduced back only while the flag equals the round's sequence number. By 1 the piece then stays until this
//      rank has reduced it back or consumed it.
//   4. The other rank may alternate while this rank takes part in another execution, or in none. It then publishes round 0 only, as the two
//      never meet. So a rank that alternates expects round 0 of every execution there, and anything after executions that it left out or
//      gave up.
// No deadlock: of all rounds that any rank has yet to publish, reduce back or consume, the earliest can always go on.
//
// Templated on the atomics, so that a test can run the very same code through every interleaving.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "intranode/flags.hpp"

namespace tutti::intranode {

/// Which execution.
struct RunNumber {
  SequenceNumber first = 0;  // sequence number of round 0
  std::uint64_t call = 0;    // that it belongs to
  std::uint64_t turn = 0;    // decides which inline slot, and which slot comes first
};

/// One execution, as the flags see it.
struct Run {
  std::uint64_t span = 1;  // sequence numbers set aside for it: the same on all ranks, at least their numbers of rounds
  std::int64_t rounds = 1;
  bool publishes = true;  // something for the others, in every round
  bool in_slots = true;   // … in the slots; otherwise in the inline slot
  bool hears_all = true;  // reads what every peer published
  bool reduces_back = false;
  bool alternates = false;      // of two ranks that both publish and consume; only the first execution of a call
  bool after_exchange = false;  // the second part of an execution whose first took one round
};

template <class Policy>
class Steps {
 public:
  using MemberFlags = Flags<Policy>;

  Steps() = default;
  /// `flags[rank]` is this rank's own.
  Steps(int rank, std::vector<MemberFlags*> flags) : rank_(rank), flags_(std::move(flags)) {}

  void begin(const RunNumber& number, const Run& run) {
    number_ = number;
    run_ = run;
    published_ = reduced_ = consumed_ = 0;
    reduce_source_ = consume_source_ = 0;
    heard_all_ = true;
    if (!ended_ || number.call - call_ > 1) {
      for (SequenceNumber& seq : alternating_seq_in_slot_) seq = number.first - 1;
    }
    call_ = number.call;
    ended_ = false;
    // Executions may have been left out before this one: this rank will not read their pieces.
    if (own_consumed_ != number.first - 1) store_consumed(number.first - 1);
  }

  /// Does all that can be done now; true when the last round is consumed.
  template <class Work>
  bool advance(Work& work) {
    moved_ = false;
    for (;;) {
      bool again = publish(work);
      if (run_.reduces_back) again |= reduce_back(work);
      again |= consume(work);
      if (consumed_ == run_.rounds) return true;
      if (!again) return false;
    }
  }
  /// The same for an execution of one round that is not reduced back: what publish() and consume() come to then.
  template <bool in_slots, class Work>
  bool advance_single(Work& work) {
    moved_ = false;
    const int here = inline_slot(), place = place_of(0);
    if (published_ == 0) {
      if (!all_consumed(in_slots ? held_before(0) : seq_in_inline_slot_[here])) return false;
      work.publish(0, place);
      if (in_slots && run_.publishes) seq_in_slot_[place % Policy::slots] = number_.first;
      alternating_seq_in_slot_[place % Policy::slots] = seq_in_inline_slot_[here] = number_.first;
      flags(rank_).inline_slots[here].seq.store(number_.first, release);
      published_ = 1;
      moved_ = notify_due_ = true;
    }
    for (; consume_source_ < work.consume_sources(); ++consume_source_) {
      const int peer = work.consume_source(consume_source_);
      if (flags(peer).inline_slots[here].seq.load(acquire) != number_.first) return false;
      work.check_peer(peer, here);
      work.consume(0, place, peer);
      moved_ = true;
    }
    heard_all(0);
    work.finish(0, place);
    consumed_ = 1;
    ended_ = moved_ = notify_due_ = true;
    store_consumed(last());
    return true;
  }
  /// Whether the last advance() came any further.
  [[nodiscard]] bool moved() const { return moved_; }
  /// Whether a flag was written, since this was asked last, that others may wait for.
  [[nodiscard]] bool take_notify_due() { return std::exchange(notify_due_, false); }

  /// Gives the execution up: nothing of it is read any more.
  void abandon() {
    ended_ = false;
    flags(rank_).abandoned.seqs[inline_slot()].store(number_.first, release);
    store_consumed(last());
  }

  /// For executions that read the others' arrays in place: whether every rank is through. If one gave up meanwhile, this never becomes
  /// true. The arrays were lent until here.
  bool is_over() {
    if (!all_consumed(last())) return false;
    Policy::fence();  // the reads in place come before this look at the flags
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      const auto& abandoned = flags(peer).abandoned.seqs;
      if (abandoned[inline_slot()].load(acquire) == number_.first) return false;
      if (run_.after_exchange &&
          abandoned[(number_.turn - 1) % Policy::inline_slots].load(acquire) == number_.first - 1)
        return false;
    }
    return true;
  }

  [[nodiscard]] std::int64_t rounds_consumed() const { return consumed_; }
  [[nodiscard]] SequenceNumber last() const { return number_.first + run_.span - 1; }

  /// Calls `visit(peer)` for those that keep the next step from being made.
  template <class Work, class Visit>
  void visit_awaited(const Work& work, Visit visit) const {
    const bool ended = consumed_ == run_.rounds;  // it waits until all are through
    if (ended || published_ == consumed_) {
      const SequenceNumber awaited = ended ? last() : held_before(published_);
      for (int peer = 0; peer < size(); ++peer) {
        if (peer != rank_ && !reached(flags(peer).consumed.seq.load(acquire), awaited)) visit(peer);
      }
    } else if (run_.reduces_back && reduced_ == consumed_) {
      for (int i = 0; i < work.reduce_sources(); ++i) {
        if (!is_published(work.reduce_source(i), reduced_)) visit(work.reduce_source(i));
      }
    } else {
      for (int i = 0; i < work.consume_sources(); ++i) {
        const int peer = work.consume_source(i);
        if (work.expects(peer, consumed_) && !is_ready(peer, consumed_)) visit(peer);
      }
    }
  }

  /// Where a piece of this execution lies, or of one like it so many turns later: in one of its rank's slots; of ranks that alternate, in
  /// the slots kept for that, the own ones first, then the other's.
  [[nodiscard]] int place_of(std::int64_t round, std::uint64_t turns_later = 0) const {
    const std::uint64_t half_way = Policy::slots / 2;  // there the next execution starts
    const std::uint64_t at = (number_.turn + turns_later) * half_way + static_cast<std::uint64_t>(round);
    return static_cast<int>(run_.alternates ? Policy::slots + at % (2 * Policy::slots) : at % Policy::slots);
  }
  static constexpr int places = 3 * Policy::slots;
  [[nodiscard]] int inline_slot() const { return static_cast<int>(number_.turn % Policy::inline_slots); }
  [[nodiscard]] typename MemberFlags::InlineSlot& inline_slot_of(int rank) const {
    return flags(rank).inline_slots[inline_slot()];
  }

 private:
  static constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;

  [[nodiscard]] int size() const { return static_cast<int>(flags_.size()); }
  [[nodiscard]] MemberFlags& flags(int rank) const { return *flags_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] SequenceNumber seq_of(std::int64_t round) const {
    return number_.first + static_cast<std::uint64_t>(round);
  }

  [[nodiscard]] int slot_of(std::int64_t round) const { return place_of(round) % Policy::slots; }

  // The sequence number of what lay where the round will be published.
  [[nodiscard]] SequenceNumber held_before(std::int64_t round) const {
    const SequenceNumber* const held = run_.alternates ? alternating_seq_in_slot_ : seq_in_slot_;
    const SequenceNumber slot = run_.publishes && run_.in_slots ? held[slot_of(round)] : lowest_consumed_;
    const SequenceNumber inline_seq = round == 0 ? seq_in_inline_slot_[inline_slot()] : lowest_consumed_;
    return reached(slot, inline_seq) ? slot : inline_seq;
  }

  // What this rank has seen once it does not read again: in a steady stream of small calls it reads no line of `consumed`.
  bool all_consumed(SequenceNumber seq) {
    if (reached(lowest_consumed_, seq)) return true;
    SequenceNumber lowest = seq + (SequenceNumber{1} << 62);
    for (int i = 0; i < size(); ++i) {
      const int peer = laggard_ + i < size() ? laggard_ + i : laggard_ + i - size();
      if (peer == rank_) continue;
      const SequenceNumber seen = flags(peer).consumed.seq.load(acquire);
      if (!reached(seen, seq)) {
        laggard_ = peer;
        return false;
      }
      if (reached(lowest, seen)) lowest = seen;
    }
    lowest_consumed_ = lowest;
    return true;
  }

  template <class Work>
  bool publish(Work& work) {
    if (published_ == run_.rounds || published_ == consumed_ + Policy::slots) return false;
    if (run_.alternates && published_ > 0 && consumed_ == 0) return false;
    if (!all_consumed(held_before(published_))) return false;
    const int slot = slot_of(published_);
    const SequenceNumber seq = seq_of(published_);
    work.publish(published_, place_of(published_));
    if (run_.publishes && run_.in_slots) seq_in_slot_[slot] = seq;
    if (run_.alternates || published_ == 0) alternating_seq_in_slot_[slot] = seq;
    if (published_ == 0) {
      seq_in_inline_slot_[inline_slot()] = seq;
      flags(rank_).inline_slots[inline_slot()].seq.store(seq, release);
    } else if (run_.publishes) {
      flags(rank_).ready[slot].seq.store(seq, release);
    }
    ++published_;
    moved_ = notify_due_ = true;
    return true;
  }

  [[nodiscard]] bool is_published(int peer, std::int64_t round) const {
    if (round == 0) return flags(peer).inline_slots[inline_slot()].seq.load(acquire) == number_.first;
    return flags(peer).ready[slot_of(round)].seq.load(acquire) == seq_of(round);
  }
  [[nodiscard]] bool is_ready(int peer, std::int64_t round) const {
    if (!run_.reduces_back) return is_published(peer, round);
    return flags(peer).reduced[slot_of(round)].seq.load(acquire) == seq_of(round);
  }

  // Invariant 2, read from the other side.
  void heard_all(std::int64_t round) {
    const SequenceNumber implied = round < Policy::slots ? number_.first - 1 : seq_of(round - Policy::slots);
    if (run_.hears_all && reached(implied, lowest_consumed_)) lowest_consumed_ = implied;
  }

  template <class Work>
  bool reduce_back(Work& work) {
    if (reduced_ == published_) return false;
    for (; reduce_source_ < work.reduce_sources(); ++reduce_source_) {
      const int peer = work.reduce_source(reduce_source_);
      if (!is_published(peer, reduced_)) return false;
      if (reduced_ == 0) work.check_peer(peer, inline_slot());
      moved_ = true;
    }
    heard_all(reduced_);
    work.reduce_back(reduced_, place_of(reduced_));
    flags(rank_).reduced[slot_of(reduced_)].seq.store(seq_of(reduced_), release);
    reduce_source_ = 0;
    ++reduced_;
    moved_ = notify_due_ = true;
    return true;
  }

  template <class Work>
  bool consume(Work& work) {
    if (consumed_ == (run_.reduces_back ? reduced_ : published_)) return false;
    for (; consume_source_ < work.consume_sources(); ++consume_source_) {
      const int peer = work.consume_source(consume_source_);
      if (!work.expects(peer, consumed_)) {
        heard_all_ = false;
        continue;
      }
      if (!is_ready(peer, consumed_)) return false;
      if (consumed_ == 0 && !run_.reduces_back) work.check_peer(peer, inline_slot());
      work.consume(consumed_, place_of(consumed_), peer);
      moved_ = true;
    }
    if (!run_.reduces_back && heard_all_) heard_all(consumed_);
    // Once all have reduced back, only this rank reads what it published.
    if (run_.reduces_back && work.consume_sources() == size() - 1) seq_in_slot_[slot_of(consumed_)] = lowest_consumed_;
    work.finish(consumed_, place_of(consumed_));
    heard_all_ = true;
    consume_source_ = 0;
    ++consumed_;
    ended_ = consumed_ == run_.rounds;
    store_consumed(consumed_ == run_.rounds ? last() : seq_of(consumed_ - 1));
    moved_ = notify_due_ = true;
    return true;
  }

  void store_consumed(SequenceNumber seq) {
    own_consumed_ = seq;
    flags(rank_).consumed.seq.store(seq, release);
  }

  int rank_ = 0;
  std::vector<MemberFlags*> flags_;
  RunNumber number_;
  Run run_;
  std::int64_t published_ = 0, reduced_ = 0, consumed_ = 0;  // rounds
  int reduce_source_ = 0, consume_source_ = 0;               // the next source of this round
  bool heard_all_ = true;                                    // no source was passed over in this round
  bool moved_ = false, notify_due_ = false;
  // Across executions: sequence numbers of what was published there last; in slots that alternate, by this rank or perhaps the other.
  SequenceNumber seq_in_slot_[Policy::slots] = {}, seq_in_inline_slot_[Policy::inline_slots] = {},
                 alternating_seq_in_slot_[Policy::slots] = {};
  SequenceNumber lowest_consumed_ = 0;  // every peer's `consumed` has reached this
  SequenceNumber own_consumed_ = 0;
  std::uint64_t call_ = 0;  // of the last execution
  bool ended_ = false;      // … which was not given up
  int laggard_ = 0;         // the peer that was behind at the last look
};

}  // namespace tutti::intranode
