// tcp_events.cpp: what comes in on the links of the tcp transport: frames, goodbyes, losses.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transport/tcp.hpp"

namespace tutti::transport {

bool TcpTransport::admit(Link& link) {
  const LinkPurpose& purpose = link.purpose;
  if (purpose.world != world_ || purpose.to != rank_ || purpose.from < 0 || purpose.from >= size()) return false;
  if (purpose.from == rank_ || purpose.stream > static_cast<std::uint32_t>(options_.streams)) return false;
  Peer& peer = peer_of(link);
  if (peer.is_gone()) return false;
  return std::none_of(peer.incoming.begin(), peer.incoming.end(), [&](const Link* other) {
    return other->purpose.kind == purpose.kind && other->purpose.stream == purpose.stream;
  });
}

// Whoever comes while this rank is on its way out is told so, instead of being turned away: it would take that for a loss.
void TcpTransport::link_opened(Link& link) {
  Peer& peer = peer_of(link);
  if (!link.mine) {
    peer.was_reached = true;
    link.attached = true;
    peer.incoming.push_back(&link);
    if (link.purpose.kind == LinkKind::control && peer.control == nullptr) peer.control = &link;
  }
  if (says_goodbye_) say_goodbye(link);
}

// The peer may not have seen all of this rank's connections yet: one that waits for its handshake there may hold data. So it is told
// how many there are.
void TcpTransport::say_goodbye(Link& link) {
  const auto& links = connections_.links();
  const auto count = std::count_if(links.begin(), links.end(), [&](const auto& other) {
    return other->mine && other->peer == link.peer && other->is_open();
  });
  connections_.push(link, {.head = encode_numbers(FrameType::goodbye, {.first = static_cast<std::uint64_t>(count)})});
}

void TcpTransport::frame_begins(Link& link, const wire::FrameHeader& header, std::span<const std::byte> extra) {
  Peer& peer = peer_of(link);
  ++peer.frames_seen;
  peer.was_reached = true;
  const auto type = static_cast<FrameType>(header.type);
  const bool from_sender = !link.mine && link.purpose.kind == LinkKind::stream;
  const bool from_receiver = link.mine && link.purpose.kind == LinkKind::stream;
  link.incoming = {.kind = Incoming::Kind::discard, .bytes = static_cast<std::int64_t>(header.payload_bytes)};
  if (type == FrameType::goodbye) return goodbye(link, decode_numbers(extra));
  if (type == FrameType::control && link.purpose.kind == LinkKind::control) {
    if (!closing_) control_begins(link, header.payload_bytes);
    return;
  }
  if (from_receiver && type == FrameType::cts) return sender_.cts_received(peer, decode_numbers(extra));
  if (from_receiver && type == FrameType::drop) return sender_.dropped(peer, decode_numbers(extra));
  if (from_receiver && type == FrameType::credit) return sender_.credited(peer, decode_numbers(extra));
  if (from_sender && closing_) return;
  if (from_sender && type == FrameType::eager) return receiver_.eager_begins(link, decode_message(header, extra));
  if (from_sender && type == FrameType::announce) return receiver_.announced(link, decode_message(header, extra));
  if (from_sender && type == FrameType::abort) return receiver_.aborted(peer, decode_numbers(extra));
  if (from_sender && type == FrameType::data) {
    return receiver_.data_begins(link, decode_numbers(extra), static_cast<std::int64_t>(header.payload_bytes));
  }
  throw MalformedMessage(fmt::format("a frame of type {} does not belong on the {}", header.type, link.purpose.text()));
}

void TcpTransport::control_begins(Link& link, std::uint64_t bytes) {
  if (bytes > control_bytes_max) {
    throw MalformedMessage(
        fmt::format("a control message claims {} bytes, at most {} are allowed", bytes, control_bytes_max));
  }
  link.control.resize(bytes);
  link.incoming.kind = Incoming::Kind::control;
}

std::byte* TcpTransport::payload_place(Link& link) {
  if (link.incoming.kind == Incoming::Kind::control) return link.control.data();
  return receiver_.payload_place(link);
}

void TcpTransport::frame_ends(Link& link) {
  if (link.incoming.kind == Incoming::Kind::control) {
    link.incoming = {};
    listener_->control(link.peer, link.control);
  } else {
    receiver_.payload_ends(link);
  }
}

// The other side writes nothing more on this link, and wants nothing more from it.
void TcpTransport::goodbye(Link& link, const Numbers& numbers) {
  Peer& peer = peer_of(link);
  link.parted = true;
  peer.saying_goodbye = true;
  peer.links_to_end = std::max(peer.links_to_end, numbers.first);
  connections_.fail(link, "it said goodbye");
}

void TcpTransport::settle_failures() {
  for (auto failures = connections_.take_failures(); !failures.empty(); failures = connections_.take_failures()) {
    for (const ConnectionManager::Failure& failure : failures) link_ended(*failure.link, failure.reason);
  }
  connections_.sweep();
}

// What the peer wrote on its other links before it went is read first: it may say goodbye there.
void TcpTransport::link_ended(Link& link, const std::string& reason) {
  Peer& peer = peer_of(link);
  if (peer.is_gone()) return;
  if (!peer.saying_goodbye) {
    std::vector<Link*> others;
    peer.for_each_link([&](Link& other) { others.push_back(&other); });
    for (Link* other : others) connections_.drain(*other);
  }
  if (peer.saying_goodbye) {
    part_if_unconnected(peer);
  } else {
    lose(peer, link, reason);
  }
}

void TcpTransport::part_if_unconnected(Peer& peer) {
  bool open = peer.incoming.size() < peer.links_to_end;  // one of them is still at the door, with what it holds
  peer.for_each_link([&](const Link& link) { open |= link.is_open(); });
  if (open) return;
  disconnect(
      peer, Peer::Standing::parted,
      fmt::format("rank {}: rank {} has said goodbye and closed its connections; it ended before this message was "
                  "exchanged, check that all ranks make the same calls",
                  rank_, peer.rank));
  if (!closing_) listener_->parted(peer.rank);
}

void TcpTransport::lose(Peer& peer, const Link& link, const std::string& reason) {
  const std::string cause = fmt::format("{} to {}: {}", link.purpose.text(), peer.address.text(), reason);
  disconnect(peer, Peer::Standing::lost,
             fmt::format("rank {}: lost rank {} ({}); see whether that rank crashed or its host is unreachable", rank_,
                         peer.rank, cause));
  if (closing_) return;
  peer.was_reached ? listener_->lost(peer.rank, cause) : listener_->unreachable(peer.rank, cause);
}

void TcpTransport::disconnect(Peer& peer, Peer::Standing standing, std::string reason) {
  peer.standing = standing;
  peer.reason = std::move(reason);
  if (departure_) departure_(peer.rank, peer.reason);
  sender_.fail_all(peer);
  receiver_.fail_all(peer);
  peer.for_each_link([&](Link& link) {
    connections_.fail(link, {});
    link.attached = false;
  });
  peer.control = nullptr;
  peer.streams.clear();
  peer.incoming.clear();
}

template <class Unfinished>
void TcpTransport::work_until(TimePoint deadline, Unfinished unfinished) {
  const auto& links = connections_.links();
  while (std::any_of(links.begin(), links.end(), [&](const auto& link) { return unfinished(*link); })) {
    const TimePoint now = clock_.now();
    if (now >= deadline) return;
    // An acknowledgement makes no event: look again soon.
    connections_.wait(std::min(deadline, now + std::chrono::milliseconds(1)), Events::all);
    connections_.work();
    settle_failures();
  }
}

// First all data, then the goodbyes, then nothing more: a peer that has read a goodbye has read everything. The door is
// closed last, so that whoever is turned away from it finds the goodbye on another link.
void TcpTransport::close(TimePoint deadline) {
  if (std::exchange(closed_, true)) return;
  closing_ = true;
  work_until(deadline, [this](const Link& link) { return is_unfinished(link); });
  says_goodbye_ = true;
  for (const auto& link : connections_.links()) {
    if (link->is_open()) say_goodbye(*link);
  }
  work_until(deadline, [](const Link& link) { return link.is_open() && !link.output.empty(); });
  work_until(deadline, [](const Link& link) { return !ConnectionManager::is_acknowledged(link); });
  connections_.stop_listening();
  for (Peer& peer : peers_) {
    if (!peer.is_gone()) {
      disconnect(peer, Peer::Standing::parted, fmt::format("rank {}: the transport is closed", rank_));
    }
  }
  for (const auto& link : connections_.links()) connections_.fail(*link, {});
  settle_failures();
}

}  // namespace tutti::transport
