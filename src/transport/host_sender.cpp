// host_sender.cpp: sending inside a host.
// SPDX-License-Identifier: Apache-2.0
#include "transport/host_sender.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "shm/doorbell.hpp"
#include "transport/stage.hpp"

namespace tutti::transport::host {

namespace {

constexpr std::size_t remote_keys_per_page = 512;

template <class Body>
std::byte* put(std::byte* place, const Body& body) {
  std::memcpy(place, &body, sizeof body);
  return place + sizeof body;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

void Sender::make_ring(Peer& peer) {
  std::byte* const memory = setup_.arena.allocate(setup_.options.ring_bytes, 4096);
  peer.out = RingWriter(memory, setup_.options.ring_bytes / line_bytes, peer.theirs->read_lines);
  peer.ours->ring_offset.store(setup_.arena.offset_of(memory), std::memory_order_release);
  setup_.first_use(peer.rank);
}

void Sender::send(Peer& peer, Transfer& transfer) {
  transfer.state = Transfer::State::pending;
  set_stage(transfer, Stage::sending);
  if (peer.has_waiting() || !write(peer, transfer)) return enqueue(peer, transfer);
  shm::notify(*peer.doorbell);
  peer.out.zero_ahead();
}

// Whatever way the message takes, its first record decides its place among the others. False if there is no room.
bool Sender::write(Peer& peer, Transfer& transfer) try {
  if (!peer.out.exists()) [[unlikely]]
    make_ring(peer);
  const std::int64_t bytes = transfer.envelope.bytes;
  if (bytes <= setup_.options.eager_bytes_max && has_credit(peer, credit_cost(bytes))) {
    return write_eager(peer, transfer);
  }
  return write_rts(peer, transfer);
} catch (const Error& error) {  // no memory for a ring or a remote key
  fail(transfer, fmt::format("rank {}: cannot send to rank {}: {}", setup_.rank, peer.rank, error.what()));
  return true;
}

bool Sender::has_credit(Peer& peer, std::int64_t cost) {
  const auto left = [&] {
    return setup_.options.credit_bytes - (peer.spent_bytes - static_cast<std::int64_t>(peer.returned_bytes_seen));
  };
  if (cost <= left()) return true;
  const std::uint64_t returned = peer.theirs->returned_bytes.load(std::memory_order_acquire);
  if (returned <= static_cast<std::uint64_t>(peer.spent_bytes)) peer.returned_bytes_seen = returned;
  return cost <= left();
}

// All fragments or none: the ring never ends in the middle of a message that somebody might cancel.
bool Sender::write_eager(Peer& peer, Transfer& transfer) {
  const auto bytes = static_cast<std::size_t>(transfer.envelope.bytes);
  const auto fragment = static_cast<std::size_t>(setup_.options.fragment_bytes);
  const std::size_t first = std::min(bytes, fragment);
  if (bytes > fragment) {
    const std::uint64_t record = lines_of(sizeof(FullHead) + fragment);
    if (!peer.out.has_room(record * (bytes / fragment + 1), record)) return false;
  }
  if (!write_first(peer, transfer.envelope, transfer.from, first)) return false;
  if (bytes > first) shm::notify(*peer.doorbell);
  for (std::size_t at = first; at < bytes; at += fragment) {
    const std::size_t some = std::min(fragment, bytes - at);
    std::byte* const body = peer.out.begin(some);
    copy_bytes(body, transfer.from + at, some);
    peer.out.publish({.kind = RecordKind::more, .bytes = static_cast<std::uint32_t>(some)});
  }
  peer.spent_bytes += credit_cost(transfer.envelope.bytes);
  finish(transfer);
  return true;
}

// A brief record says the size of the whole message by its own.
bool Sender::write_first(Peer& peer, const Envelope& envelope, const std::byte* payload, std::size_t bytes) {
  const bool whole = static_cast<std::int64_t>(bytes) == envelope.bytes;
  const bool brief = whole && is_brief(peer.last_sent, envelope);
  const std::size_t body_bytes = (brief ? sizeof(BriefHead) : sizeof(FullHead)) + bytes;
  std::byte* place = peer.out.begin(body_bytes);
  if (place == nullptr) return false;
  place = brief ? put(place, BriefHead{.tag = envelope.tag,
                                       .phase = envelope.phase,
                                       .sequence = envelope.signature.sequence,
                                       .count = envelope.signature.count})
                : put(place, FullHead{.envelope = envelope});
  copy_bytes(place, payload, bytes);
  if (!brief) peer.last_sent = envelope;
  peer.out.publish(
      {.kind = brief ? RecordKind::brief : RecordKind::full, .bytes = static_cast<std::uint32_t>(body_bytes)});
  return true;
}

bool Sender::write_rts(Peer& peer, Transfer& transfer) {
  make_remote_keys();
  std::byte* const place = peer.out.begin(sizeof(RtsBody));
  if (place == nullptr) return false;
  const std::uint64_t number = outbound_.add({.transfer = &transfer, .peer = peer.rank});
  RemoteKey& remote_key = remote_key_of(number);
  remote_key.store(number, std::memory_order_release);
  const auto bytes = static_cast<std::size_t>(transfer.envelope.bytes);
  const bool shared = bytes > 0 && setup_.arena.contains(transfer.from, bytes);
  put(place, RtsBody{.envelope = transfer.envelope,
                     .rts = {.message = number,
                             .address = reinterpret_cast<std::uintptr_t>(transfer.from),
                             .arena_offset = shared ? setup_.arena.offset_of(transfer.from) : Rts::nowhere,
                             .remote_key_offset = setup_.arena.offset_of(&remote_key)}});
  set_stage(transfer, Stage::announced);
  peer.out.publish({.kind = RecordKind::rts, .bytes = sizeof(RtsBody)});
  return true;
}

// One for each message there may be, the next one included.
void Sender::make_remote_keys() {
  while (remote_key_pages_.size() <= outbound_.count() / remote_keys_per_page) {
    remote_key_pages_.push_back(
        reinterpret_cast<RemoteKey*>(setup_.arena.allocate(remote_keys_per_page * sizeof(RemoteKey), 4096)));
  }
}

Sender::RemoteKey& Sender::remote_key_of(std::uint64_t number) {
  const auto slot = static_cast<std::uint32_t>(number);
  return remote_key_pages_[slot / remote_keys_per_page][slot % remote_keys_per_page];
}

bool Sender::write_notification(Peer& peer, Notification notification) {
  std::byte* const place = peer.out.begin(sizeof(NotificationBody));
  if (place == nullptr) return false;
  put(place, NotificationBody{.message = notification.message});
  peer.out.publish({.kind = notification.kind, .bytes = sizeof(NotificationBody)});
  return true;
}

// The next fragment of the oldest message that was asked for.
bool Sender::write_fragment(Peer& peer) {
  const std::uint64_t number = peer.cts_received.front();
  Outbound* const outbound = find(peer, number);
  const std::int64_t left = outbound != nullptr ? outbound->transfer->envelope.bytes - outbound->passed_bytes : 0;
  if (left > 0) {
    const std::int64_t some =
        std::min({left, setup_.options.cts_fragment_bytes, static_cast<std::int64_t>(setup_.options.ring_bytes) / 8});
    const std::size_t body_bytes = sizeof(FragmentHead) + static_cast<std::size_t>(some);
    std::byte* place = peer.out.begin(body_bytes);
    if (place == nullptr) return false;
    place = put(place, FragmentHead{.message = number, .offset = outbound->passed_bytes});
    copy_bytes(place, outbound->transfer->from + outbound->passed_bytes, static_cast<std::size_t>(some));
    peer.out.publish({.kind = RecordKind::fragment, .bytes = static_cast<std::uint32_t>(body_bytes)});
    outbound->passed_bytes += some;
    if (some < left) return true;
    finish(*outbound->transfer);
    forget(number);
  }
  peer.cts_received.erase(peer.cts_received.begin());
  return true;
}

void Sender::tell(Peer& peer, Notification notification) {
  if (peer.is_gone) return;
  if (peer.notifications.empty() && has_ring(peer) && write_notification(peer, notification))
    return shm::notify(*peer.doorbell);
  peer.notifications.push_back(notification);
  rest_not(peer);
}

bool Sender::flush() {
  bool moved = false;
  for (std::size_t i = 0; i < pending_.size();) {
    Peer& peer = *pending_[i];
    moved |= flush(peer);
    if (peer.has_waiting()) {
      ++i;
    } else {
      peer.is_pending = false;
      pending_[i] = pending_.back();
      pending_.pop_back();
    }
  }
  return moved;
}

// A note needs one as well; where there is no memory for it now, the note waits.
bool Sender::has_ring(Peer& peer) try {
  if (!peer.out.exists()) make_ring(peer);
  return true;
} catch (const Error&) {
  return false;
}

bool Sender::flush(Peer& peer) {
  if (!has_ring(peer)) return false;
  const std::uint64_t before = peer.out.written_lines();
  std::size_t told = 0;
  while (told < peer.notifications.size() && write_notification(peer, peer.notifications[told])) ++told;
  peer.notifications.erase(peer.notifications.begin(), peer.notifications.begin() + static_cast<std::ptrdiff_t>(told));
  for (bool room = peer.notifications.empty(); room && (!peer.cts_received.empty() || peer.first_waiting != nullptr);) {
    if (!peer.cts_received.empty()) room = write_fragment(peer);
    if (!room || peer.first_waiting == nullptr) continue;
    Transfer& next = *peer.first_waiting;
    room = write(peer, next);
    if (room) dequeue(peer, next);
  }
  if (peer.out.written_lines() == before) return false;
  shm::notify(*peer.doorbell);
  return true;
}

void Sender::rest_not(Peer& peer) {
  if (!std::exchange(peer.is_pending, true)) pending_.push_back(&peer);
}

void Sender::enqueue(Peer& peer, Transfer& transfer) {
  transfer.next = nullptr;
  transfer.previous = peer.last_waiting;
  (peer.last_waiting != nullptr ? peer.last_waiting->next : peer.first_waiting) = &transfer;
  peer.last_waiting = &transfer;
  rest_not(peer);
}

void Sender::dequeue(Peer& peer, Transfer& transfer) {
  (transfer.previous != nullptr ? transfer.previous->next : peer.first_waiting) = transfer.next;
  (transfer.next != nullptr ? transfer.next->previous : peer.last_waiting) = transfer.previous;
  transfer.next = transfer.previous = nullptr;
}

Sender::Outbound* Sender::find(const Peer& peer, std::uint64_t number) {
  Outbound* const outbound = outbound_.find(number);
  return outbound != nullptr && outbound->peer == peer.rank ? outbound : nullptr;
}

void Sender::forget(std::uint64_t number) {
  remote_key_of(number).store(0, std::memory_order_release);
  outbound_.remove(number);
}

void Sender::done(Peer& peer, std::uint64_t message) {
  Outbound* const outbound = find(peer, message);
  if (outbound == nullptr) return;  // cancelled in the meantime
  finish(*outbound->transfer);
  forget(message);
}

void Sender::cts_received(Peer& peer, std::uint64_t message) {
  if (find(peer, message) == nullptr) return;
  peer.cts_received.push_back(message);
  rest_not(peer);
}

void Sender::cancel(Peer& peer, Transfer& transfer) {
  if (stage_of(transfer) == Stage::sending) return dequeue(peer, transfer);
  outbound_.for_each([&](std::uint64_t number, const Outbound& outbound) {
    if (outbound.transfer != &transfer) return;
    forget(number);
    // The remote key is seen to be gone before the memory is seen to change.
    shm::fence_before_notify();
    tell(peer, {.kind = RecordKind::cancel, .message = number});
  });
}

void Sender::fail_all(Peer& peer) {
  while (peer.first_waiting != nullptr) {
    Transfer& transfer = *peer.first_waiting;
    dequeue(peer, transfer);
    fail(transfer, peer.reason);
  }
  outbound_.for_each([&](std::uint64_t number, const Outbound& outbound) {
    if (outbound.peer != peer.rank) return;
    fail(*outbound.transfer, peer.reason);
    forget(number);
  });
  shm::fence_before_notify();
  peer.notifications.clear();
  peer.cts_received.clear();
}

void Sender::withdraw_rts() {
  outbound_.for_each(
      [&](std::uint64_t number, const Outbound&) { remote_key_of(number).store(0, std::memory_order_release); });
  shm::fence_before_notify();
}

}  // namespace tutti::transport::host
