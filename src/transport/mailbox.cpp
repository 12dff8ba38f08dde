// mailbox.cpp: matching by hashed, intrusive first-in-first-out lists.
// SPDX-License-Identifier: Apache-2.0
#include "transport/mailbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "transport/stage.hpp"

namespace tutti::transport {

namespace {

constexpr std::size_t first_bin_count = 64;
constexpr std::int64_t pooled_bytes_max = 4 << 20;

// Point to point leaves the peer out, because a receive may take messages of anyone. One multiplication per word, all at
// once, and one scramble at the end: this is done for every message.
std::uint64_t key_of(int peer, const Envelope& envelope) {
  std::uint64_t key = envelope.group * 0x9e3779b97f4a7c15u ^
                      (std::uint64_t{envelope.epoch} << 32 | envelope.tag) * 0xc2b2ae3d27d4eb4fu ^ envelope.lane;
  if (envelope.lane == collective_lane) {
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
  if (a.group != b.group || a.epoch != b.epoch || a.tag != b.tag || a.lane != b.lane) return false;
  if (a.lane != collective_lane) return peer == other || peer == any_peer || other == any_peer;
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
template class Bins<Arrival>;

Mailbox::~Mailbox() = default;

Mailbox::Fit Mailbox::settle(Transfer& receive, int peer, const Envelope& envelope) const {
  const std::int64_t room = receive.envelope.bytes;
  receive.peer = peer;
  receive.envelope = envelope;
  if (envelope.bytes == room) return Fit::taken;
  const bool collective = envelope.lane == collective_lane;
  fail(receive,
       fmt::format("rank {}: the message from rank {} ({}{}) has {} bytes, but the receive has room for {} bytes; {}",
                   rank_, peer, collective ? describe(envelope.signature) + ", message " : "tag ", envelope.tag,
                   envelope.bytes, room,
                   collective ? "check that all ranks call with the same counts"
                              : "give the receive the size that the sender sends"));
  return Fit::wrong_size;
}

Mailbox::Match Mailbox::match(int peer, const Envelope& envelope) {
  if (posted_.count() == 0) return {};
  const std::uint64_t key = key_of(peer, envelope);
  Transfer* const receive = posted_.find(key, peer, envelope);
  if (receive == nullptr) return {};
  posted_.remove(key, *receive);
  const bool from_anyone = receive->peer == any_peer;
  return {settle(*receive, peer, envelope), receive, from_anyone};
}

Mailbox::Found Mailbox::post(Transfer& receive) {
  receive.state = Transfer::State::pending;
  const std::uint64_t key = key_of(receive);
  Arrival* const arrival = unexpected_.count() == 0 ? nullptr : unexpected_.find(key, receive.peer, receive.envelope);
  if (arrival == nullptr) {
    posted_.add(key, receive);
    return {};
  }
  unexpected_.remove(key, *arrival);
  return {settle(receive, arrival->peer, arrival->envelope), arrival};
}

void Mailbox::withdraw(Transfer& receive) { posted_.remove(key_of(receive), receive); }
void Mailbox::forget(Arrival& arrival) { unexpected_.remove(key_of(arrival), arrival); }

Arrival& Mailbox::keep(int peer, const Envelope& envelope) {
  Arrival& arrival = take_entry(peer, envelope);
  unexpected_.add(key_of(arrival), arrival);
  return arrival;
}

Arrival& Mailbox::take_entry(int peer, const Envelope& envelope) {
  if (pool_ == nullptr) pool_ = entries_.emplace_back(std::make_unique<Arrival>()).get();
  Arrival& arrival = *std::exchange(pool_, pool_->next);
  pooled_bytes_ -= arrival.room_bytes;
  held_bytes_ += arrival.room_bytes;
  arrival.peer = peer;
  arrival.envelope = envelope;
  return arrival;
}

Mailbox::GivenBack Mailbox::give_back(const Transfer& receive) {
  Arrival* arrival = used_again_by(receive);
  GivenBack given{};
  if (arrival == nullptr) {
    arrival = &take_copy(receive);
    given.rest = arrival->rest.get();
  }
  arrival->claimed = nullptr;
  given.match = match(arrival->peer, arrival->envelope);
  switch (given.match.fit) {
    case Fit::none: unexpected_.add_first(key_of(*arrival), *arrival); break;
    case Fit::taken: use_again(*arrival, given.match.receive); break;
    case Fit::wrong_size:
      given.match.receive->handle = nullptr;
      use_again(*arrival, nullptr);
      break;
  }
  return given;
}

// All bytes are copied, because those that have come may lie anywhere in the message.
Arrival& Mailbox::take_copy(const Transfer& receive) {
  Arrival& arrival = take_entry(receive.peer, receive.envelope);
  const std::int64_t bytes = receive.envelope.bytes;
  try {
    std::byte* const room = make_room(arrival);
    if (receive.state == Transfer::State::pending) {
      arrival.rest = std::make_unique<Transfer>(Transfer{.envelope = receive.envelope,
                                                         .peer = receive.peer,
                                                         .to = room,
                                                         .state = Transfer::State::pending,
                                                         .watcher = this,
                                                         .handle = receive.handle});
    }
    if (bytes > 0) std::memcpy(room, receive.to, static_cast<std::size_t>(bytes));
  } catch (...) {
    recycle(arrival);
    throw;
  }
  arrival.was_received = true;
  arrival.arrived_bytes = arrival.rest ? 0 : bytes;
  return arrival;
}

bool Mailbox::use_again(Arrival& arrival, Transfer* receive) {
  if (!arrival.was_received) return false;
  if (arrival.rest && arrival.rest->state == Transfer::State::pending) {
    arrival.is_unwanted = receive == nullptr;
    arrival.claimed = receive;
    if (receive != nullptr) set_stage(*receive, Stage::taken);
    return true;
  }
  if (receive != nullptr) {
    const auto bytes = static_cast<std::size_t>(arrival.envelope.bytes);
    if (bytes > 0) std::memcpy(receive->to, arrival.payload.get(), bytes);
    finish(*receive);
  }
  recycle(arrival);
  return true;
}

bool Mailbox::cancel_used_again(const Transfer& receive) {
  Arrival* const arrival = used_again_by(receive);
  if (arrival == nullptr) return false;
  arrival->claimed = nullptr;
  arrival->is_unwanted = true;
  return true;
}

Arrival* Mailbox::used_again_by(const Transfer& receive) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const auto& entry) { return entry->rest != nullptr && entry->claimed == &receive; });
  return found == entries_.end() ? nullptr : found->get();
}

// The rest of a message that was given back has come, or will never come.
void Mailbox::is_over(Transfer& rest) {
  Arrival& arrival = **std::ranges::find_if(entries_, [&](const auto& entry) { return entry->rest.get() == &rest; });
  const bool is_whole = rest.state == Transfer::State::done;
  Transfer* const receive = std::exchange(arrival.claimed, nullptr);
  if (is_whole) arrival.arrived_bytes = arrival.envelope.bytes;
  if (receive == nullptr && !arrival.is_unwanted) {
    if (is_whole) return;  // it stays until somebody receives it
    forget(arrival);
  }
  if (is_whole && receive != nullptr) {
    use_again(arrival, receive);
    return;
  }
  if (receive != nullptr) fail(*receive, rest.error);
  recycle(arrival);
}

std::byte* Mailbox::make_room(Arrival& arrival) {
  const std::int64_t bytes = arrival.envelope.bytes;
  if (arrival.room_bytes < bytes) {
    arrival.payload = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
    held_bytes_ += bytes - arrival.room_bytes;
    arrival.room_bytes = bytes;
  }
  return arrival.payload.get();
}

void Mailbox::recycle(Arrival& arrival) {
  held_bytes_ -= arrival.room_bytes;
  if (pooled_bytes_ + arrival.room_bytes > pooled_bytes_max) {
    arrival.payload.reset();
    arrival.room_bytes = 0;
  }
  pooled_bytes_ += arrival.room_bytes;
  arrival = Arrival{.payload = std::move(arrival.payload), .room_bytes = arrival.room_bytes, .next = pool_};
  pool_ = &arrival;
}

Transfer* Mailbox::withdraw_all(int peer) {
  return posted_.remove_if([peer](const Transfer& receive) { return receive.peer == peer; });
}

Arrival* Mailbox::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  return unexpected_.remove_if([=](const Arrival& arrival) {
    if (arrival.envelope.group != group) return false;
    if (up_to_sequence == every_sequence) return true;
    return arrival.envelope.lane == collective_lane && arrival.envelope.signature.sequence <= up_to_sequence;
  });
}

Arrival* Mailbox::forget_announced(int peer) {
  return unexpected_.remove_if([peer](const Arrival& arrival) { return arrival.peer == peer && arrival.announced; });
}

Arrival* Mailbox::forget_announced(int peer, std::uint64_t id) {
  return unexpected_.remove_if(
      [=](const Arrival& arrival) { return arrival.peer == peer && arrival.announced && arrival.id == id; });
}

}  // namespace tutti::transport
