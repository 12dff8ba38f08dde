// matching_queue.cpp: matching by hashed, intrusive first-in-first-out lists.
// SPDX-License-Identifier: Apache-2.0
#include "messages/matching_queue.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "messages/stage.hpp"

namespace tutti::messages {

namespace {

constexpr std::size_t first_bin_count = 64;
constexpr std::int64_t pooled_bytes_max = 4 << 20;

// Point to point leaves the peer out, because a receive may take messages of anyone. One multiplication per word, all at
// once, and one scramble at the end: this is done for every message.
std::uint64_t key_of(int peer, const Envelope& envelope) {
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

bool matches(int peer, const Envelope& a, int other, const Envelope& b) {
  if (a.group != b.group || a.epoch != b.epoch || a.tag != b.tag || a.channel != b.channel) return false;
  if (a.channel != collective_channel) return peer == other || peer == any_peer || other == any_peer;
  return peer == other && a.signature.sequence == b.signature.sequence && a.phase == b.phase;
}

}  // namespace

template <class Entry>
Bins<Entry>::Bins() : bins_(first_bin_count) {}

template <class Entry>
void Bins<Entry>::add(std::uint64_t key, Entry& entry) {
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
  Bin& bin = bins_[index_of(key)];
  entry.previous = nullptr;
  entry.next = bin.first;
  (bin.first != nullptr ? bin.first->previous : bin.last) = &entry;
  bin.first = &entry;
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
      add(key_of(moved), moved);
    }
  }
}

template class Bins<Transfer>;
template class Bins<UnexpectedMessage>;

MatchingQueue::~MatchingQueue() = default;

MatchingQueue::Fit MatchingQueue::settle(Transfer& receive, int peer, const Envelope& envelope) const {
  const std::int64_t room = receive.envelope.bytes;
  receive.peer = peer;
  receive.envelope = envelope;
  if (envelope.bytes == room) return Fit::taken;
  const bool collective = envelope.channel == collective_channel;
  fail(receive,
       fmt::format("rank {}: the message from rank {} ({}{}) has {} bytes, but the receive has room for {} bytes; {}",
                   rank_, peer, collective ? describe(envelope.signature) + ", message " : "tag ", envelope.tag,
                   envelope.bytes, room,
                   collective ? "check that all ranks call with the same counts"
                              : "give the receive the size that the sender sends"));
  return Fit::wrong_size;
}

MatchingQueue::Match MatchingQueue::match(int peer, const Envelope& envelope) {
  if (posted_.count() == 0) return {};
  const std::uint64_t key = key_of(peer, envelope);
  Transfer* const receive = posted_.find(key, peer, envelope);
  if (receive == nullptr) return {};
  posted_.remove(key, *receive);
  const bool from_anyone = receive->peer == any_peer;
  return {settle(*receive, peer, envelope), receive, from_anyone};
}

MatchingQueue::Found MatchingQueue::post(Transfer& receive, Place place) {
  receive.state = Transfer::State::pending;
  const std::uint64_t key = key_of(receive);
  UnexpectedMessage* const message =
      unexpected_.count() == 0 ? nullptr : unexpected_.find(key, receive.peer, receive.envelope);
  if (message == nullptr) {
    place == Place::first ? posted_.add_first(key, receive) : posted_.add(key, receive);
    return {};
  }
  unexpected_.remove(key, *message);
  return {settle(receive, message->peer, message->envelope), message};
}

void MatchingQueue::withdraw(Transfer& receive) { posted_.remove(key_of(receive), receive); }
void MatchingQueue::forget(UnexpectedMessage& message) { unexpected_.remove(key_of(message), message); }

UnexpectedMessage& MatchingQueue::keep(int peer, const Envelope& envelope) {
  UnexpectedMessage& message = take_entry(peer, envelope);
  unexpected_.add(key_of(message), message);
  return message;
}

UnexpectedMessage& MatchingQueue::take_entry(int peer, const Envelope& envelope) {
  if (pool_ == nullptr) pool_ = entries_.emplace_back(std::make_unique<UnexpectedMessage>()).get();
  UnexpectedMessage& message = *std::exchange(pool_, pool_->next);
  pooled_bytes_ -= message.room_bytes;
  held_bytes_ += message.room_bytes;
  message.peer = peer;
  message.envelope = envelope;
  return message;
}

MatchingQueue::GivenBack MatchingQueue::give_back(const Transfer& receive) {
  UnexpectedMessage* message = used_again_by(receive);
  GivenBack given{};
  if (message == nullptr) {
    message = &take_copy(receive);
    given.rest = message->rest.get();
  }
  message->claimed = nullptr;
  given.match = match(message->peer, message->envelope);
  switch (given.match.fit) {
    case Fit::none: unexpected_.add_first(key_of(*message), *message); break;
    case Fit::taken: use_again(*message, given.match.receive); break;
    case Fit::wrong_size:
      given.match.receive->handle = nullptr;
      use_again(*message, nullptr);
      break;
  }
  return given;
}

// All bytes are copied, because those that have come may lie anywhere in the message.
UnexpectedMessage& MatchingQueue::take_copy(const Transfer& receive) {
  UnexpectedMessage& message = take_entry(receive.peer, receive.envelope);
  const std::int64_t bytes = receive.envelope.bytes;
  try {
    std::byte* const room = make_room(message);
    if (receive.state == Transfer::State::pending) {
      message.rest = std::make_unique<Transfer>(Transfer{.envelope = receive.envelope,
                                                         .peer = receive.peer,
                                                         .to = room,
                                                         .state = Transfer::State::pending,
                                                         .watcher = this,
                                                         .handle = receive.handle});
    }
    if (bytes > 0) std::memcpy(room, receive.to, static_cast<std::size_t>(bytes));
  } catch (...) {
    recycle(message);
    throw;
  }
  message.was_received = true;
  return message;
}

bool MatchingQueue::use_again(UnexpectedMessage& message, Transfer* receive) {
  if (!message.was_received) return false;
  if (message.rest && message.rest->state == Transfer::State::pending) {
    message.is_unwanted = receive == nullptr;
    message.claimed = receive;
    if (receive != nullptr) set_stage(*receive, Stage::again);
    return true;
  }
  if (receive != nullptr) {
    const auto bytes = static_cast<std::size_t>(message.envelope.bytes);
    if (bytes > 0) std::memcpy(receive->to, message.payload.get(), bytes);
    finish(*receive);
  }
  recycle(message);
  return true;
}

bool MatchingQueue::cancel_used_again(const Transfer& receive) {
  UnexpectedMessage* const message = used_again_by(receive);
  if (message == nullptr) return false;
  message->claimed = nullptr;
  message->is_unwanted = true;
  return true;
}

UnexpectedMessage* MatchingQueue::used_again_by(const Transfer& receive) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const auto& entry) { return entry->rest != nullptr && entry->claimed == &receive; });
  return found == entries_.end() ? nullptr : found->get();
}

// The rest of a message that was given back has come, or will never come.
void MatchingQueue::is_over(Transfer& rest) {
  UnexpectedMessage& message =
      **std::ranges::find_if(entries_, [&](const auto& entry) { return entry->rest.get() == &rest; });
  const bool is_whole = rest.state == Transfer::State::done;
  Transfer* const receive = std::exchange(message.claimed, nullptr);
  if (receive == nullptr && !message.is_unwanted) {
    if (is_whole) return;  // it stays until somebody receives it
    forget(message);
  }
  if (is_whole && receive != nullptr) {
    use_again(message, receive);
    return;
  }
  if (receive != nullptr) fail(*receive, rest.error);
  recycle(message);
}

std::byte* MatchingQueue::make_room(UnexpectedMessage& message) {
  const std::int64_t bytes = message.envelope.bytes;
  if (message.room_bytes < bytes) {
    message.payload = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
    held_bytes_ += bytes - message.room_bytes;
    message.room_bytes = bytes;
  }
  return message.payload.get();
}

void MatchingQueue::recycle(UnexpectedMessage& message) {
  held_bytes_ -= message.room_bytes;
  if (pooled_bytes_ + message.room_bytes > pooled_bytes_max) {
    message.payload.reset();
    message.room_bytes = 0;
  }
  pooled_bytes_ += message.room_bytes;
  message = UnexpectedMessage{.payload = std::move(message.payload), .room_bytes = message.room_bytes, .next = pool_};
  pool_ = &message;
}

Transfer* MatchingQueue::withdraw_all(int peer) {
  return posted_.remove_if([peer](const Transfer& receive) { return receive.peer == peer; });
}

UnexpectedMessage* MatchingQueue::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  return unexpected_.remove_if([=](const UnexpectedMessage& message) {
    if (message.envelope.group != group) return false;
    if (up_to_sequence == every_sequence) return true;
    return message.envelope.channel == collective_channel && message.envelope.signature.sequence <= up_to_sequence;
  });
}

UnexpectedMessage* MatchingQueue::forget_announced(int peer) {
  return unexpected_.remove_if(
      [peer](const UnexpectedMessage& message) { return message.peer == peer && message.announced; });
}

UnexpectedMessage* MatchingQueue::forget_announced(int peer, std::uint64_t id) {
  return unexpected_.remove_if(
      [=](const UnexpectedMessage& message) { return message.peer == peer && message.announced && message.id == id; });
}

}  // namespace tutti::messages
