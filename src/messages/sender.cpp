// sender.cpp: sending.
// SPDX-License-Identifier: Apache-2.0
#include "messages/sender.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "messages/message_form.hpp"

namespace tutti::messages {

namespace {

// Per peer and poll, so that no peer starves the others, and reading and writing alternate while data is in the cache.
constexpr std::int64_t fragment_bytes_per_flush = 1 << 20;

std::span<const std::byte> payload_of(const Transfer& transfer) {
  return {transfer.from, static_cast<std::size_t>(transfer.envelope.bytes)};
}

// The receiver will know this head when it reads the next one.
void remember(Peer& peer, const Envelope& envelope) {
  peer.last_sent = envelope;
  peer.knows_last_sent = true;
}

}  // namespace

// The first frame to the peer: its end is noticed from now on.
void Sender::attach(Peer& peer) {
  peer.is_attached = true;
  if (peer.link != &network_) network_.attach(peer.rank);
}

// Inlined, as start(): every small message passes here.
[[gnu::always_inline]] inline bool Sender::send_eager(Peer& peer, Transfer& transfer) {
  const Envelope& envelope = transfer.envelope;
  const bool brief = peer.knows_last_sent && peer.queued_full_count == 0 && is_brief(peer.last_sent, envelope);
  const BriefHead head{.tag = envelope.tag,
                       .phase = envelope.phase,
                       .sequence = envelope.signature.sequence,
                       .count = envelope.signature.count};
  const Frame frame{.type = static_cast<std::uint8_t>(brief ? FrameType::brief : FrameType::full),
                    .head = brief ? bytes_of(head) : bytes_of(envelope),
                    .payload = payload_of(transfer)};
  const Link::Taken taken = to_link(peer, FrameOrder::message, frame, &transfer);
  if (taken == Link::Taken::no_room) return false;
  peer.credit_bytes -= credit_cost(envelope.bytes);
  if (taken == Link::Taken::copied) {
    if (!brief) remember(peer, envelope);
    finish(transfer);
    return true;
  }
  if (!brief) ++peer.queued_full_count;
  set_stage(transfer, brief ? Stage::brief_in_link : Stage::full_in_link);
  peer.in_link.add(transfer);
  count(peer, 1);
  return true;
}

// Whichever way the message takes, its first frame decides its place among the others. False if there is no room.
[[gnu::always_inline]] inline bool Sender::start(Peer& peer, Transfer& transfer) try {
  const std::int64_t bytes = transfer.envelope.bytes;
  if (needs_shape(transfer.envelope) && !tell_shape(peer, *transfer.shape)) [[unlikely]]
    return false;
  if (bytes <= peer.limits.eager_bytes_max && credit_cost(bytes) <= peer.credit_bytes) {
    return send_eager(peer, transfer);
  }
  return announce(peer, transfer);
} catch (const Error& error) {  // the link has no memory for it
  fail(transfer, fmt::format("rank {}: cannot send to rank {}: {}", rank_, peer.rank, error.what()));
  return true;
}

// Arrays of one shape tell it once. False if there is no room.
bool Sender::tell_shape(Peer& peer, const MessageShape& shape) {
  const std::span lengths(shape.lengths.data(), static_cast<std::size_t>(shape.axes));
  const std::span told(peer.told_shape.lengths.data(), static_cast<std::size_t>(peer.told_shape.axes));
  if (std::ranges::equal(lengths, told)) return true;
  const Frame frame{.type = static_cast<std::uint8_t>(FrameType::shape), .head = std::as_bytes(lengths)};
  if (to_link(peer, FrameOrder::message, frame, nullptr) == Link::Taken::no_room) return false;
  peer.told_shape = shape;
  return true;
}

void Sender::send(Peer& peer, Transfer& transfer) {
  transfer.state = Transfer::State::pending;
  if (peer.is_pending || !start(peer, transfer)) enqueue(peer, transfer);
}

bool Sender::announce(Peer& peer, Transfer& transfer) {
  const std::int64_t bytes = transfer.envelope.bytes;
  const std::uint64_t number = outbound_.add({.peer = peer.rank, .transfer = &transfer, .unsent_bytes = bytes});
  Outbound& outbound = *outbound_.find(number);
  outbound.number = number;
  count(peer, 1);
  Link::Taken taken = Link::Taken::no_room;
  try {
    if (bytes > 0) outbound.key = peer.link->expose(payload_of(transfer));
    std::array<std::byte, frame_head_bytes_max> head;
    const RtsHead rts{.envelope = transfer.envelope, .message = number};
    std::memcpy(head.data(), &rts, sizeof rts);
    std::memcpy(head.data() + sizeof rts, outbound.key.bytes.data(), outbound.key.size);
    taken = to_link(peer, FrameOrder::message,
                    {.type = static_cast<std::uint8_t>(FrameType::rts),
                     .head = std::span(head).first(sizeof rts + outbound.key.size)},
                    &transfer);
  } catch (...) {
    remove(peer, outbound);
    throw;
  }
  if (taken == Link::Taken::no_room) {
    remove(peer, outbound);
    return false;
  }
  outbound.rts_sent = taken == Link::Taken::copied;
  set_object(transfer, outbound);
  peer.link->prepare_bulk(peer.rank);
  return true;
}

bool Sender::send_reply(Peer& peer, const Reply& reply) try {
  const Frame frame{.type = static_cast<std::uint8_t>(reply.type), .head = bytes_of(reply.numbers)};
  // It must not overtake the announcement.
  const bool follows = reply.type == FrameType::cancel || reply.type == FrameType::ask_back;
  const auto order = follows ? FrameOrder::message : FrameOrder::reply;
  return to_link(peer, order, frame, nullptr) != Link::Taken::no_room;
} catch (const Error&) {  // no memory now: it waits
  return false;
}

// The next fragment of the oldest message that was asked for. False if there is no room.
bool Sender::send_fragment(Peer& peer) {
  Outbound* const outbound = find(peer, peer.sending.front());
  const std::int64_t left = outbound != nullptr ? outbound->transfer->envelope.bytes - outbound->next_offset : 0;
  const std::int64_t bytes = std::min(left, peer.limits.fragment_bytes_max);
  if (bytes > 0) {
    const Numbers numbers{.first = outbound->receive, .second = static_cast<std::uint64_t>(outbound->next_offset)};
    const Frame frame{
        .type = static_cast<std::uint8_t>(FrameType::fragment),
        .head = bytes_of(numbers),
        .payload = payload_of(*outbound->transfer)
                       .subspan(static_cast<std::size_t>(outbound->next_offset), static_cast<std::size_t>(bytes))};
    const Link::Taken taken = to_link(peer, FrameOrder::bulk, frame, outbound->transfer);
    if (taken == Link::Taken::no_room) return false;
    outbound->next_offset += bytes;
    if (taken == Link::Taken::copied) bytes_left(peer, *outbound, bytes);
  }
  if (bytes == left) peer.sending.erase(peer.sending.begin());
  return true;
}

// So many bytes of the message are on their way.
void Sender::bytes_left(Peer& peer, Outbound& outbound, std::int64_t bytes) {
  outbound.unsent_bytes -= bytes;
  if (outbound.unsent_bytes > 0) return;
  Transfer& transfer = *outbound.transfer;
  remove(peer, outbound);
  finish(transfer);
}

void Sender::reply(Peer& peer, const Reply& reply) {
  if (peer.is_gone || peer.is_given_up) return;
  if (peer.replies.empty() && send_reply(peer, reply)) return;
  peer.replies.push_back(reply);
  list_pending(peer);
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

bool Sender::flush(Peer& peer) {
  std::size_t replied = 0;
  while (replied < peer.replies.size() && send_reply(peer, peer.replies[replied])) ++replied;
  peer.replies.erase(peer.replies.begin(), peer.replies.begin() + static_cast<std::ptrdiff_t>(replied));
  bool moved = replied > 0;
  if (!peer.replies.empty()) return moved;
  bool room_for_fragments = true, room_for_messages = true;
  for (std::int64_t sent_bytes = 0; sent_bytes < fragment_bytes_per_flush;) {
    room_for_fragments = room_for_fragments && !peer.sending.empty() && send_fragment(peer);
    if (room_for_fragments) sent_bytes += peer.limits.fragment_bytes_max;
    // In a channel for both, small messages would take the room that a fragment waits for.
    if (!room_for_fragments && !peer.sending.empty() && !peer.limits.bulk_has_own_channel) break;
    room_for_messages = room_for_messages && !peer.waiting.empty() && start_next(peer);
    if (!room_for_fragments && !room_for_messages) break;
    moved = true;
  }
  return moved;
}

// The oldest message that waits. False if there is no room.
bool Sender::start_next(Peer& peer) {
  Transfer& next = *peer.waiting.first;
  peer.waiting.remove(next);
  if (start(peer, next)) {
    count(peer, -1);
    return true;
  }
  set_stage(next, Stage::waiting);
  peer.waiting.add_first(next);
  return false;
}

void Sender::list_pending(Peer& peer) {
  if (!std::exchange(peer.is_pending, true)) pending_.push_back(&peer);
}

void Sender::enqueue(Peer& peer, Transfer& transfer) {
  set_stage(transfer, Stage::waiting);
  peer.waiting.add(transfer);
  count(peer, 1);
  list_pending(peer);
}

Sender::Outbound* Sender::find(const Peer& peer, std::uint64_t number) {
  Outbound* const outbound = outbound_.find(number);
  return outbound != nullptr && outbound->peer == peer.rank ? outbound : nullptr;
}

void Sender::remove(Peer& peer, Outbound& outbound) {
  if (outbound.key.size > 0) peer.link->revoke(outbound.key);
  outbound_.remove(outbound.number);
  count(peer, -1);
}

void Sender::sent(Peer& peer, Transfer& transfer, std::int64_t payload_bytes) {
  if (stage_of(transfer) == Stage::announced) {
    Outbound& outbound = object_of<Outbound>(transfer);
    if (payload_bytes > 0) return bytes_left(peer, outbound, payload_bytes);
    outbound.rts_sent = true;
    return;
  }
  if (stage_of(transfer) == Stage::full_in_link) {
    --peer.queued_full_count;
    remember(peer, transfer.envelope);
  }
  peer.in_link.remove(transfer);
  count(peer, -1);
  finish(transfer);
}

void Sender::cts(Peer& peer, const Numbers& numbers) {
  Outbound* const outbound = find(peer, numbers.first);
  if (outbound == nullptr || outbound->receive != 0) return;  // cancelled in the meantime
  outbound->receive = numbers.second;
  peer.sending.push_back(numbers.first);
  list_pending(peer);
}

// The receiver has the message, or does not want it.
void Sender::fin(Peer& peer, std::uint64_t message) {
  Outbound* const outbound = find(peer, message);
  if (outbound == nullptr) return;  // cancelled in the meantime
  Transfer& transfer = *outbound->transfer;
  peer.link->withdraw(peer.rank, &transfer);
  remove(peer, *outbound);
  finish(transfer);
}

// The receiver has not received the message, and has forgotten it.
void Sender::refused(Peer& peer, std::uint64_t message, Transfer::Refusal why) {
  Outbound* const outbound = find(peer, message);
  if (outbound == nullptr) return;  // cancelled in the meantime
  if (why == Transfer::Refusal::asked_back && !outbound->is_asked_back) return;
  Transfer& transfer = *outbound->transfer;
  peer.link->withdraw(peer.rank, &transfer);
  remove(peer, *outbound);
  transfer.refusal = why;
  fail(transfer, "");
}

void Sender::credit(Peer& peer, std::uint64_t bytes) {
  if (bytes > static_cast<std::uint64_t>(peer.limits.credit_bytes - peer.credit_bytes)) {
    throw MalformedMessage("more credit came back than was spent; give all ranks the same transport options");
  }
  peer.credit_bytes += static_cast<std::int64_t>(bytes);
}

void Sender::cancel(Peer& peer, Transfer& transfer) {
  const Stage stage = stage_of(transfer);
  if (stage == Stage::waiting) {
    peer.waiting.remove(transfer);
    return count(peer, -1);
  }
  if (stage == Stage::announced) {
    Outbound& outbound = object_of<Outbound>(transfer);
    const std::uint64_t number = outbound.number;
    const bool was_announced = peer.link->withdraw(peer.rank, &transfer) == 0 || outbound.rts_sent;
    remove(peer, outbound);
    if (was_announced) reply(peer, {.type = FrameType::cancel, .numbers = {.first = number}});
    return;
  }
  const bool vanished = peer.link->withdraw(peer.rank, &transfer) > 0;
  if (vanished) peer.credit_bytes += credit_cost(transfer.envelope.bytes);
  if (stage == Stage::full_in_link) {
    --peer.queued_full_count;
    if (!vanished) peer.knows_last_sent = false;  // the receiver will know this head instead
  }
  peer.in_link.remove(transfer);
  count(peer, -1);
}

// A message that lies in the link as a whole has as good as left: the rest of its frame would be copied there.
bool Sender::withdraw(Peer& peer, Transfer& transfer) {
  if (stage_of(transfer) == Stage::waiting) {
    cancel(peer, transfer);
    return true;
  }
  if (stage_of(transfer) != Stage::announced) return false;
  Outbound& outbound = object_of<Outbound>(transfer);
  if (!std::exchange(outbound.is_asked_back, true))
    reply(peer, {.type = FrameType::ask_back, .numbers = {.first = outbound.number}});
  return false;
}

void Sender::fail_all(Peer& peer) {
  for (TransferList* list : {&peer.in_link, &peer.waiting}) {
    while (!list->empty()) {
      Transfer& transfer = *list->first;
      list->remove(transfer);
      count(peer, -1);
      fail(transfer, peer.reason);
    }
  }
  outbound_.for_each([&](std::uint64_t, Outbound& outbound) {
    if (outbound.peer != peer.rank) return;
    Transfer& transfer = *outbound.transfer;
    remove(peer, outbound);
    fail(transfer, peer.reason);
  });
  peer.replies.clear();
  peer.sending.clear();
}

void Sender::revoke_all(std::vector<Peer>& peers) {
  outbound_.for_each([&](std::uint64_t, Outbound& outbound) {
    if (outbound.key.size == 0) return;
    peers[static_cast<std::size_t>(outbound.peer)].link->revoke(outbound.key);
    outbound.key.size = 0;
  });
}

}  // namespace tutti::messages
