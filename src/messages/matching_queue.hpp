// matching_queue.hpp: where messages find their receives: posted receives, and messages that nobody asked for yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

#include "messages/bins.hpp"

namespace tutti::messages {

// Matches messages with receives. Pure: no I/O, no clock.
//
//  1. Collective channel: by (peer, group, epoch, sequence, phase, tag).
//  2. Point-to-point channels: by (group, epoch, tag or every_tag) and peer or any_peer; messages in the order they came in, receives
//     in the order they were posted. A receive for every tag looks at all unexpected messages; others at those like it.
//  3. Nothing is allocated when the receive was posted first; unexpected messages come out of a pool.
class MatchingQueue final : private TransferWatcher {
 public:
  enum class Fit : std::uint8_t {
    none,      // no receive was posted for it: keep() it, or drop it
    taken,     // `receive` carries the message's envelope and source now, and is still pending
    refused,   // `receive` has failed and says why; the message is to be dropped
    reserved,  // `receive` is a probe, which carries the message's envelope and source now: reserve() the message for it
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

  // A message came in: which receive takes it? `shape`: what its sender told, used where the envelope needs one.
  Match match(int peer, const Envelope& envelope, const MessageShape& shape = {});
  // Keeps a message that nobody asked for yet: for the next receive like it, or for the probe that has found it. The entry stays
  // valid until post(), release() or a forget hands it out.
  UnexpectedMessage& keep(int peer, const Envelope& envelope, const MessageShape& shape = {},
                          Transfer* probe = nullptr);
  // The message is the probe's, which is done.
  void reserve(UnexpectedMessage& message, Transfer& probe);
  // Ends a reservation and hands the message out.
  UnexpectedMessage& release(Transfer& probe);
  // The bytes of a reserved message can no longer be had: its probe fails, and the message is handed out.
  void lose(UnexpectedMessage& message, std::string why, Transfer::Refusal refusal);
  // A message that was handed out is here again, where it was.
  void put_back(UnexpectedMessage& message);
  // The messages that are reserved.
  [[nodiscard]] const std::vector<UnexpectedMessage*>& reserved() const { return reserved_; }
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
  // Posts a receive, whose state becomes pending; `refused` leaves it failed. `place`: among the receives that wait.
  enum class Place : std::uint8_t { last, first };
  Found post(Transfer& receive, Place place = Place::last);
  // The same, but if there is no such message, nothing happens.
  Found look(Transfer& receive);
  // Makes a receive one of this message. `taken`, `refused`, or for a probe `reserved`.
  Fit settle(Transfer& receive, int peer, const Envelope& envelope, const MessageShape* shape) const;
  // Takes back a receive that was posted and not matched.
  void withdraw(Transfer& receive);
  // Takes back all unmatched receives from this very peer, chained by `next`; those from any_peer stay.
  Transfer* withdraw_all(int peer);

  // Takes out unexpected messages, chained by `next`, each to be given to recycle(): of the group's collectives up to
  // that sequence (see every_sequence).
  UnexpectedMessage* forget(std::uint64_t group, std::uint64_t up_to_sequence);
  // … all of this channel.
  UnexpectedMessage* forget(std::uint32_t channel);
  // … of a peer that is gone, whose bytes can no longer be asked for.
  UnexpectedMessage* forget_announced(int peer);
  // … the one that this sender took back; nullptr if it is not here any more.
  UnexpectedMessage* forget_announced(int peer, std::uint64_t id);
  // … this one.
  void forget(UnexpectedMessage& message);
  void recycle(UnexpectedMessage& message);

  // Of point-to-point messages that nobody asked for yet, oldest first.
  [[nodiscard]] std::vector<Transport::Unreceived> unreceived(std::uint64_t group, std::uint32_t epoch) const;

  [[nodiscard]] std::size_t posted_count() const { return posted_.count(); }
  [[nodiscard]] std::size_t unexpected_count() const { return unexpected_.count(); }
  // Payload memory of unexpected messages, those handed out included; and what the pool keeps for the next ones.
  [[nodiscard]] std::int64_t held_bytes() const { return held_bytes_; }
  [[nodiscard]] std::int64_t pooled_bytes() const { return pooled_bytes_; }

 private:
  [[nodiscard]] Transfer* find_posted(std::uint64_t key, int peer, const Envelope& envelope) const;
  [[nodiscard]] UnexpectedMessage* find_unexpected(std::uint64_t key, const Transfer& receive) const;
  void unlink(std::uint64_t key, Transfer& receive);
  void is_over(Transfer& rest) override;
  [[nodiscard]] UnexpectedMessage* used_again_by(const Transfer& receive) const;
  UnexpectedMessage& take_entry(int peer, const Envelope& envelope, const MessageShape* shape);
  UnexpectedMessage& take_copy(const Transfer& receive);

  int rank_;
  Bins<Transfer> posted_;
  Bins<UnexpectedMessage> unexpected_;
  std::size_t every_tag_count_ = 0;  // of the posted receives
  std::vector<UnexpectedMessage*> reserved_;
  std::vector<std::unique_ptr<UnexpectedMessage>> entries_;  // all there are
  UnexpectedMessage* pool_ = nullptr;
  std::int64_t held_bytes_ = 0;
  std::int64_t pooled_bytes_ = 0;
};

// The announced message of that sender and number, if it is reserved; otherwise nullptr.
UnexpectedMessage* find_reserved(const MatchingQueue& queue, int peer, std::uint64_t id);

}  // namespace tutti::messages
