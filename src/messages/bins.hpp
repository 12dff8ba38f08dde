// bins.hpp: posted receives and unexpected messages, hashed by what they match by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tutti/transport.hpp>

#include "base/hash.hpp"

namespace tutti::messages {

// The channels of Envelope::channel. Messages of the library's own are out of reach of receives that take any tag.
inline constexpr std::uint32_t collective_channel = 0;
inline constexpr std::uint32_t point_to_point_channel = 1;
inline constexpr std::uint32_t internal_channel = 2;

// Envelope::tag of a receive that takes any.
inline constexpr std::uint32_t every_tag = 0xffffffffu;

// `up_to_sequence` of a group that is gone: its point-to-point messages, which have no sequence, are forgotten too.
inline constexpr std::uint64_t every_sequence = ~std::uint64_t{0};

// A message whose header came in before a receive was posted for it. Who holds it, holds it alone: it is either linked
// in the matching queue, reserved there for a probe, or was handed out and goes back by recycle().
struct UnexpectedMessage {
  int peer = any_peer;
  Envelope envelope{};
  std::unique_ptr<MessageShape> shape{};  // where the envelope needs one
  Transfer* reserved_by = nullptr;        // a probe that has found it
  std::uint64_t id = 0;                   // the owner's: the number of an announced message
  bool announced = false;                 // only the header is here; the bytes wait at the sender
  std::uint64_t landing = 0;              // the owner's: the number of the frame whose payload is still coming in
  Transfer* claimed = nullptr;            // the receive that waits for the rest of it
  std::unique_ptr<std::byte[]> payload{};
  std::int64_t room_bytes = 0;  // of `payload`, see MatchingQueue::make_room
  bool was_received = false;    // and given back: its sender has its credit already
  // Of a message that was given back before all of it had come: receives the rest, into `payload`.
  std::unique_ptr<Transfer> rest{};
  bool is_unwanted = false;  // the rest is still to come, and is thrown away
  std::int64_t order = 0;
  UnexpectedMessage* next =
      nullptr;  // the links belong to its holder: the matching queue, or the chain it was handed out in
  UnexpectedMessage* previous = nullptr;
};

// What an entry is hashed by. Point to point leaves the peer out, because a receive may take messages of anyone.
// One multiplication per word, all at once, and one scramble at the end: this is done for every message.
inline std::uint64_t key_of(int peer, const Envelope& envelope) {
  std::uint64_t key = envelope.group * 0x9e3779b97f4a7c15u ^
                      (std::uint64_t{envelope.epoch} << 32 | envelope.tag) * 0xc2b2ae3d27d4eb4fu ^ envelope.channel;
  if (envelope.channel == collective_channel) {
    key ^= envelope.signature.sequence * 0x165667b19e3779f9u ^
           (std::uint64_t{envelope.phase} << 32 | static_cast<std::uint32_t>(peer)) * 0xd6e8feb86659fd93u;
  }
  return scramble(key);
}

template <class Entry>
std::uint64_t key_of(const Entry& entry) {
  return key_of(entry.peer, entry.envelope);
}

inline bool matches(int peer, const Envelope& a, int other, const Envelope& b) {
  if (a.group != b.group || a.epoch != b.epoch || a.channel != b.channel) return false;
  if (a.channel == collective_channel)
    return a.tag == b.tag && peer == other && a.signature.sequence == b.signature.sequence && a.phase == b.phase;
  return (a.tag == b.tag || a.tag == every_tag || b.tag == every_tag) &&
         (peer == other || peer == any_peer || other == any_peer);
}

// Entries of one kind, hashed by what they match by and linked through their own `next` and `previous`. Entries that
// could match the same thing share a bin, in the order in which they were added.
template <class Entry>
class Bins {
 public:
  Bins() : bins_(first_bin_count) {}
  // The key of what is looked for, added or removed (key_of) is worked out once per message, by the caller.
  void add(std::uint64_t key, Entry& entry);
  void add_first(std::uint64_t key, Entry& entry);
  // Where its order says: it was here before, or has taken one.
  void add_in_order(std::uint64_t key, Entry& entry);
  [[nodiscard]] std::int64_t take_order() { return next_order_++; }
  void remove(std::uint64_t key, Entry& entry);
  // The oldest entry that matches a message or receive of this peer (any_peer: of anyone); nullptr if there is none.
  [[nodiscard]] Entry* find(std::uint64_t key, int peer, const Envelope& envelope) const;
  // The same whatever the tags are: looks at all entries.
  [[nodiscard]] Entry* find_any_tag(int peer, const Envelope& envelope) const;
  template <class Look>
  void for_each(Look look) const;
  // Removes all entries for which `chosen` holds; returns them chained by `next`.
  template <class Chosen>
  Entry* remove_if(Chosen chosen);
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t first_bin_count = 64;
  struct Bin {
    Entry* first = nullptr;
    Entry* last = nullptr;
  };
  [[nodiscard]] std::size_t index_of(std::uint64_t key) const { return key & (bins_.size() - 1); }
  void link_last(std::uint64_t key, Entry& entry);
  void grow();

  std::vector<Bin> bins_;  // a power of two
  std::size_t count_ = 0;
  // By Entry::order, entries of different bins are compared: which is older.
  std::int64_t next_order_ = 0, first_order_ = -1;
};

template <class Entry>
void Bins<Entry>::add(std::uint64_t key, Entry& entry) {
  entry.order = next_order_++;
  link_last(key, entry);
}

template <class Entry>
void Bins<Entry>::link_last(std::uint64_t key, Entry& entry) {
  if (count_ == bins_.size()) grow();
  Bin& bin = bins_[index_of(key)];
  entry.next = nullptr;
  entry.previous = bin.last;
  (bin.last != nullptr ? bin.last->next : bin.first) = &entry;
  bin.last = &entry;
  ++count_;
}

template <class Entry>
void Bins<Entry>::add_first(std::uint64_t key, Entry& entry) {
  if (count_ == bins_.size()) grow();
  entry.order = first_order_--;
  Bin& bin = bins_[index_of(key)];
  entry.previous = nullptr;
  entry.next = bin.first;
  (bin.first != nullptr ? bin.first->previous : bin.last) = &entry;
  bin.first = &entry;
  ++count_;
}

template <class Entry>
void Bins<Entry>::add_in_order(std::uint64_t key, Entry& entry) {
  if (count_ == bins_.size()) grow();
  Bin& bin = bins_[index_of(key)];
  Entry* following = bin.first;
  while (following != nullptr && following->order < entry.order) following = following->next;
  entry.next = following;
  entry.previous = following != nullptr ? following->previous : bin.last;
  (entry.previous != nullptr ? entry.previous->next : bin.first) = &entry;
  (following != nullptr ? following->previous : bin.last) = &entry;
  ++count_;
}

template <class Entry>
void Bins<Entry>::remove(std::uint64_t key, Entry& entry) {
  Bin& bin = bins_[index_of(key)];
  (entry.previous != nullptr ? entry.previous->next : bin.first) = entry.next;
  (entry.next != nullptr ? entry.next->previous : bin.last) = entry.previous;
  entry.next = entry.previous = nullptr;
  --count_;
}

template <class Entry>
Entry* Bins<Entry>::find(std::uint64_t key, int peer, const Envelope& envelope) const {
  Entry* entry = bins_[index_of(key)].first;
  while (entry != nullptr && !matches(peer, envelope, entry->peer, entry->envelope)) entry = entry->next;
  return entry;
}

template <class Entry>
Entry* Bins<Entry>::find_any_tag(int peer, const Envelope& envelope) const {
  Entry* oldest = nullptr;
  for (const Bin& bin : bins_) {
    for (Entry* entry = bin.first; entry != nullptr; entry = entry->next) {
      if (oldest != nullptr && oldest->order < entry->order) continue;
      if (matches(peer, envelope, entry->peer, entry->envelope)) oldest = entry;
    }
  }
  return oldest;
}

template <class Entry>
template <class Look>
void Bins<Entry>::for_each(Look look) const {
  for (const Bin& bin : bins_) {
    for (const Entry* entry = bin.first; entry != nullptr; entry = entry->next) look(*entry);
  }
}

template <class Entry>
template <class Chosen>
Entry* Bins<Entry>::remove_if(Chosen chosen) {
  Entry* chain = nullptr;
  Entry** end = &chain;
  for (const Bin& bin : bins_) {
    for (Entry* entry = bin.first; entry != nullptr;) {
      Entry* const following = entry->next;
      if (chosen(*entry)) {
        remove(key_of(*entry), *entry);
        *end = entry;
        end = &entry->next;
      }
      entry = following;
    }
  }
  return chain;
}

// Entries that match alike come out of one bin in their order and go into one bin in that order.
template <class Entry>
void Bins<Entry>::grow() {
  std::vector<Bin> old(bins_.size() * 2);
  old.swap(bins_);
  count_ = 0;
  for (const Bin& bin : old) {
    for (Entry* entry = bin.first; entry != nullptr;) {
      Entry& moved = *std::exchange(entry, entry->next);
      link_last(key_of(moved), moved);
    }
  }
}

}  // namespace tutti::messages
