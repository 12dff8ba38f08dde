// tcp_incoming.cpp: receiving: what the frames of a sender say.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/tcp_receiver.hpp"

namespace tutti::transport {

void Receiver::eager_begins(Link& link, const Message& message) {
  Peer& peer = setup_.peers[static_cast<std::size_t>(link.peer)];
  const Envelope& envelope = message.envelope;
  const std::int64_t cost = credit_cost(envelope.bytes);
  peer.unreturned_bytes += cost;
  if (peer.unreturned_bytes > setup_.options.credit_bytes) {
    throw MalformedMessage(
        fmt::format("it sent more than its credit of {} bytes; give all ranks the same transport options",
                    setup_.options.credit_bytes));
  }
  link.incoming = {.kind = Incoming::Kind::discard, .cost = cost, .bytes = envelope.bytes};
  if (listener_->arrived(link.peer, envelope) == TransportListener::Verdict::drop) return;
  const MatchingQueue::Match match = matching_queue_.match(link.peer, envelope);
  switch (match.fit) {
    case MatchingQueue::Fit::taken:
      set_stage(*match.receive, Stage::taken);
      link.incoming.kind = Incoming::Kind::receive;
      link.incoming.receive = match.receive;
      break;
    case MatchingQueue::Fit::wrong_size: match.receive->handle = nullptr; break;
    case MatchingQueue::Fit::none:
      link.incoming.kind = Incoming::Kind::unexpected;
      link.incoming.unexpected = &matching_queue_.keep(link.peer, envelope);
      matching_queue_.make_room(*link.incoming.unexpected);
      held_bytes_peak_ = std::max(held_bytes_peak_, matching_queue_.held_bytes());
      break;
  }
}

void Receiver::announced(Link& link, const Message& message) {
  Peer& peer = setup_.peers[static_cast<std::size_t>(link.peer)];
  if (listener_->arrived(link.peer, message.envelope) == TransportListener::Verdict::drop) {
    return tell_sender(peer, FrameType::drop, {.first = message.id});
  }
  const MatchingQueue::Match match = matching_queue_.match(link.peer, message.envelope);
  if (match.fit == MatchingQueue::Fit::taken) return cts(*match.receive, peer, message.id);
  if (match.fit == MatchingQueue::Fit::wrong_size) {
    match.receive->handle = nullptr;
    return tell_sender(peer, FrameType::drop, {.first = message.id});
  }
  UnexpectedMessage& unexpected = matching_queue_.keep(link.peer, message.envelope);
  unexpected.announced = true;
  unexpected.id = message.id;
}

void Receiver::data_begins(Link& link, const Numbers& numbers, std::int64_t payload_bytes) {
  link.incoming = {.kind = Incoming::Kind::discard, .bytes = payload_bytes};
  const Inbound* const inbound = inbound_.find(numbers.first);
  if (inbound == nullptr || inbound->peer != link.peer) return;  // of a receive that was cancelled
  const auto offset = static_cast<std::int64_t>(numbers.second);
  const std::int64_t bytes = inbound->receive->envelope.bytes;
  if (offset < 0 || offset > bytes || payload_bytes > bytes - offset || payload_bytes > inbound->missing_bytes) {
    throw MalformedMessage(fmt::format("a chunk of {} bytes at {} does not fit into its message of {} bytes",
                                       payload_bytes, offset, bytes));
  }
  link.incoming.kind = Incoming::Kind::data;
  link.incoming.cts = numbers.first;
  link.incoming.offset = offset;
}

// The sender took a message back. Where its bytes were already granted, the receive cannot be served any more.
void Receiver::aborted(const Peer& peer, const Numbers& numbers) {
  if (UnexpectedMessage* const unexpected = matching_queue_.forget_announced(peer.rank, numbers.first))
    return matching_queue_.recycle(*unexpected);
  inbound_.for_each([&](std::uint64_t number, const Inbound& inbound) {
    if (inbound.peer != peer.rank || inbound.message != numbers.first) return;
    fail(*inbound.receive,
         fmt::format("rank {}: rank {} took the message back while it was being received; its call was "
                     "cancelled there, see its error",
                     setup_.rank, peer.rank));
    inbound_.remove(number);
  });
}

std::byte* Receiver::payload_place(const Link& link) {
  const Incoming& incoming = link.incoming;
  switch (incoming.kind) {
    case Incoming::Kind::receive: return incoming.receive->to;
    case Incoming::Kind::unexpected: return incoming.unexpected->payload.get();
    case Incoming::Kind::data:
      if (const Inbound* const inbound = inbound_.find(incoming.cts)) return inbound->receive->to + incoming.offset;
      return nullptr;
    default: return nullptr;
  }
}

void Receiver::payload_ends(Link& link) {
  const Incoming incoming = std::exchange(link.incoming, {});
  Peer& peer = setup_.peers[static_cast<std::size_t>(link.peer)];
  switch (incoming.kind) {
    case Incoming::Kind::receive:
      finish(*incoming.receive);
      give_credit_back(peer, incoming.cost);
      break;
    case Incoming::Kind::discard:
      if (incoming.cost > 0) give_credit_back(peer, incoming.cost);
      break;
    case Incoming::Kind::unexpected:
      incoming.unexpected->arrived_bytes = incoming.bytes;
      if (incoming.forgotten) {
        discard(*incoming.unexpected);
      } else if (incoming.unexpected->claimed != nullptr) {
        use(*incoming.unexpected, *std::exchange(incoming.unexpected->claimed, nullptr));
      }
      break;
    case Incoming::Kind::data:
      if (Inbound* const inbound = inbound_.find(incoming.cts)) {
        inbound->missing_bytes -= incoming.bytes;
        if (inbound->missing_bytes > 0) break;
        finish(*inbound->receive);
        inbound_.remove(incoming.cts);
      }
      break;
    case Incoming::Kind::none:
    case Incoming::Kind::control: break;
  }
}

// On the stream that the sender's heads come in on.
void Receiver::tell_sender(Peer& peer, FrameType type, const Numbers& numbers) {
  for (Link* link : peer.incoming) {
    if (link->purpose.kind != LinkKind::stream || link->purpose.stream != 0) continue;
    return setup_.connections.push(*link, {.head = encode_numbers(type, numbers)});
  }
}

// In large portions: a frame for every small message would cost more than the message.
void Receiver::give_credit_back(Peer& peer, std::int64_t cost) {
  peer.used_up_bytes += cost;
  if (peer.used_up_bytes < setup_.options.credit_bytes / 2) return;
  const std::int64_t bytes = std::exchange(peer.used_up_bytes, 0);
  peer.unreturned_bytes -= bytes;
  tell_sender(peer, FrameType::credit, {.first = static_cast<std::uint64_t>(bytes)});
}

}  // namespace tutti::transport
