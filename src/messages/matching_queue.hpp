// matching_queue.hpp: where messages find their receives: posted receives, and messages that nobody asked for yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

namespace tutti::messages {

// The two channels of Envelope::channel.
inline constexpr std::uint32_t collective_channel = 0;
inline constexpr std::uint32_t point_to_point_channel = 1;

// `up_to_sequence` of a group that is gone: its point-to-point messages, which have no sequence, are forgotten too.
inline constexpr std::uint64_t every_sequence = ~std::uint64_t{0};

// A message whose header came in before a receive was posted for it. Who holds it, holds it alone: it is either linked
// in the matching queue, or was handed out and goes back by recycle().
struct UnexpectedMessage {
  int peer = any_peer;
  Envelope envelope{};
  std::uint64_t id = 0;         // the owner's: the number of an announced message
  bool announced = false;       // only the header is here; the bytes wait at the sender
  std::uint64_t landing = 0;    // the owner's: the number of the frame whose payload is still coming in
  Transfer* claimed = nullptr;  // the receive that waits for the rest of it
  std::unique_ptr<std::byte[]> payload{};
  std::int64_t room_bytes = 0;  // of `payload`, see MatchingQueue::make_room
  bool was_received = false;    // and given back: its sender has its credit already
  // Of a message that was given back before all of it had come: receives the rest, into `payload`.
  std::unique_ptr<Transfer> rest{};
  bool is_unwanted = false;  // the rest is still to come, and is thrown away
  UnexpectedMessage* next =
      nullptr;  // the links belong to its holder: the matching queue, or the chain it was handed out in
  UnexpectedMessage* previous = nullptr;
};

// Entries of one kind, hashed by what they match by and linked through their own `next` and `previous`. Entries that
// could match the same thing share a bin, in the order in which they were added.
template <class Entry>
class Bins {
 public:
  Bins();
  // The key of what is looked for, added or removed (key_of) is worked out once per message, by the caller.
  void add(std::uint64_t key, Entry& entry);
  void add_first(std::uint64_t key, Entry& entry);
  void remove(std::uint64_t key, Entry& entry);
  // The oldest entry that matches a message or receive of this peer (any_peer: of anyone); nullptr if there is none.
  [[nodiscard]] Entry* find(std::uint64_t key, int peer, const Envelope& envelope) const;
  // Removes all entries for which `chosen` holds; returns them chained by `next`.
  template <class Chosen>
  Entry* remove_if(Chosen chosen);
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  struct Bin {
    Entry* first = nullptr;
    Entry* last = nullptr;
  };
  [[nodiscard]] std::size_t index_of(std::uint64_t key) const { return key & (bins_.size() - 1); }
  void grow();

  std::vector<Bin> bins_;  // a power of two
  std::size_t count_ = 0;
};

// Matches messages with receives. Pure: no I/O, no clock.
//
//  1. Collective channel: by (peer, group, epoch, sequence, phase, tag).
//  2. Point-to-point channel: by (group, epoch, tag) and peer or any_peer; messages in the order they came in, receives in the
//     order they were posted.
//  3. Nothing is allocated when the receive was posted first; unexpected messages come out of a pool.
class MatchingQueue final : private TransferWatcher {
 public:
  enum class Fit : std::uint8_t {
    none,        // no receive was posted for it: keep() it, or drop it
    taken,       // `receive` carries the message's envelope and source now, and is still pending
    wrong_size,  // `receive` has failed and says why; the message is to be dropped
  };
  struct Match {
    Fit fit = Fit::none;
    Transfer* receive = nullptr;  // no longer linked
    bool from_anyone = false;     // it was posted for any_peer
  };

  explicit MatchingQueue(int rank) : rank_(rank) {}
  ~MatchingQueue();
  MatchingQueue(const MatchingQueue&) = delete;
  MatchingQueue& operator=(const MatchingQueue&) = delete;

  // A message came in: which receive takes it?
  Match match(int peer, const Envelope& envelope);
  // Keeps a message that nobody asked for yet. The entry stays valid until post() or a forget hands it out.
  UnexpectedMessage& keep(int peer, const Envelope& envelope);
  struct GivenBack {
    Match match;               // a receive that was posted for such a message, and gets this one
    Transfer* rest = nullptr;  // takes the receive's place at the transport, for bytes that are still to come
  };
  // A receive that has found its message is given up. The message goes to a receive that was posted for such a one, or is
  // kept before all others like it.
  GivenBack give_back(const Transfer& receive);
  // Hands a message that was given back to another receive, or to nobody. False for any other one.
  bool use_again(UnexpectedMessage& message, Transfer* receive);
  // Cancels a receive that waits for the rest of a message that was given back. False for any other one.
  bool cancel_used_again(const Transfer& receive);
  // Payload memory for the whole message; it counts in held_bytes() until the entry is recycled.
  std::byte* make_room(UnexpectedMessage& message);

  struct Found {
    Fit fit = Fit::none;                   // none: the receive is linked in and waits
    UnexpectedMessage* message = nullptr;  // otherwise the message, no longer linked: use it up, then recycle() it
  };
  // Posts a receive, whose state becomes pending; wrong_size leaves it failed. `place`: among the receives that wait.
  enum class Place : std::uint8_t { last, first };
  Found post(Transfer& receive, Place place = Place::last);
  // Takes back a receive that was posted and not matched.
  void withdraw(Transfer& receive);
  // Takes back all unmatched receives from this very peer, chained by `next`; those from any_peer stay.
  Transfer* withdraw_all(int peer);

  // Takes out unexpected messages, chained by `next`, each to be given to recycle(): of the group's collectives up to
  // that sequence (see every_sequence).
  UnexpectedMessage* forget(std::uint64_t group, std::uint64_t up_to_sequence);
  // … of a peer that is gone, whose bytes can no longer be asked for.
  UnexpectedMessage* forget_announced(int peer);
  // … the one that this sender took back; nullptr if it is not here any more.
  UnexpectedMessage* forget_announced(int peer, std::uint64_t id);
  // … this one.
  void forget(UnexpectedMessage& message);
  void recycle(UnexpectedMessage& message);

  [[nodiscard]] bool is_empty() const { return posted_.count() == 0 && unexpected_.count() == 0; }
  [[nodiscard]] std::size_t posted_count() const { return posted_.count(); }
  [[nodiscard]] std::size_t unexpected_count() const { return unexpected_.count(); }
  // Payload memory of unexpected messages, those handed out included; and what the pool keeps for the next ones.
  [[nodiscard]] std::int64_t held_bytes() const { return held_bytes_; }
  [[nodiscard]] std::int64_t pooled_bytes() const { return pooled_bytes_; }

 private:
  Fit settle(Transfer& receive, int peer, const Envelope& envelope) const;
  void is_over(Transfer& rest) override;
  [[nodiscard]] UnexpectedMessage* used_again_by(const Transfer& receive) const;
  UnexpectedMessage& take_entry(int peer, const Envelope& envelope);
  UnexpectedMessage& take_copy(const Transfer& receive);

  int rank_;
  Bins<Transfer> posted_;
  Bins<UnexpectedMessage> unexpected_;
  std::vector<std::unique_ptr<UnexpectedMessage>> entries_;  // all there are
  UnexpectedMessage* pool_ = nullptr;
  std::int64_t held_bytes_ = 0;
  std::int64_t pooled_bytes_ = 0;
};

}  // namespace tutti::messages
