// tcp.cpp: the tcp transport as its callers see it.
// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::transport {

void check(const TcpOptions& options) {
  const auto refuse = [](const char* name, std::int64_t value, const char* range) {
    throw InvalidArgument(fmt::format("tcp option {} = {} is out of range: {}", name, value, range));
  };
  if (options.streams < 1 || options.streams > 64) refuse("streams", options.streams, "1 to 64");
  if (options.eager_bytes_max < 0) refuse("eager_bytes_max", options.eager_bytes_max, "0 or more");
  if (options.credit_bytes < 2 * credit_cost(options.eager_bytes_max)) {
    refuse("credit_bytes", options.credit_bytes, "room for two eager messages at least");
  }
  if (options.chunk_bytes < 1 || options.chunk_bytes > static_cast<std::int64_t>(frame_payload_bytes_max)) {
    refuse("chunk_bytes", options.chunk_bytes, "1 to 2^30");
  }
  if (options.half_open_max < 1) refuse("half_open_max", 0, "1 or more");
}

wire::Listener open_listener(const wire::Address& address, const TcpOptions& options) {
  return wire::Listener(address, {.socket = options.socket});
}

TcpTransport::TcpTransport(TcpSetup setup)
    : rank_(setup.rank),
      world_(setup.world),
      options_((check(setup.options), setup.options)),
      clock_(setup.clock),
      peers_(setup.table.size()),
      connections_({.listener = std::move(setup.listener),
                    .secret = setup.secret,
                    .clock = setup.clock,
                    .socket = options_.socket,
                    .handshake_timeout = options_.handshake_timeout,
                    .half_open_max = options_.half_open_max,
                    .log = setup.log},
                   *this),
      sender_({.rank = rank_, .world = world_, .options = options_, .connections = connections_}),
      receiver_({.rank = rank_, .options = options_, .connections = connections_, .peers = peers_}) {
  if (rank_ < 0 || rank_ >= size()) {
    throw InvalidArgument(fmt::format("rank {} is not in a world of {} ranks", rank_, size()));
  }
  for (int peer = 0; peer < size(); ++peer) {
    Peer& entry = peers_[static_cast<std::size_t>(peer)];
    entry.rank = peer;
    entry.address = setup.table[static_cast<std::size_t>(peer)];
    entry.credit_bytes = options_.credit_bytes;
  }
}

TcpTransport::~TcpTransport() = default;

void TcpTransport::listen(TransportListener* listener) {
  listener_ = listener;
  receiver_.listen(listener);
}

Peer& TcpTransport::checked_peer(int rank) {
  if (rank < 0 || rank >= size()) {
    throw InvalidArgument(fmt::format("rank {}: there is no rank {} in a world of {} ranks", rank_, rank, size()));
  }
  return peers_[static_cast<std::size_t>(rank)];
}

void TcpTransport::send(Transfer& transfer) {
  Peer& peer = checked_peer(transfer.peer);
  if (transfer.envelope.bytes < 0) {
    throw InvalidArgument(fmt::format("rank {}: a message of {} bytes cannot be sent", rank_, transfer.envelope.bytes));
  }
  transfer.error.clear();
  if (peer.is_gone()) return fail(transfer, peer.reason);
  if (transfer.peer != rank_) return sender_.send(peer, transfer);
  transfer.state = Transfer::State::pending;
  set_stage(transfer, Stage::to_self);
  self_sends_.push_back(&transfer);
  connections_.mark_work();
}

void TcpTransport::recv(Transfer& transfer) {
  if (transfer.peer != any_peer) checked_peer(transfer.peer);
  transfer.error.clear();
  receiver_.recv(transfer);
}

void TcpTransport::cancel(Transfer& transfer) {
  if (transfer.state != Transfer::State::pending) return;
  switch (stage_of(transfer)) {
    case Stage::sending:
    case Stage::announced: sender_.cancel(checked_peer(transfer.peer), transfer); break;
    case Stage::to_self:
      std::replace(self_sends_.begin(), self_sends_.end(), &transfer, static_cast<Transfer*>(nullptr));
      break;
    case Stage::kept_for_self: receiver_.cancel_to_self(transfer); break;
    case Stage::posted:
    case Stage::taken: receiver_.cancel(transfer); break;
  }
  transfer.state = Transfer::State::idle;
  transfer.handle = nullptr;
}

void TcpTransport::give_back(Transfer& receive) {
  if (receive.state == Transfer::State::pending && stage_of(receive) == Stage::posted) return cancel(receive);
  if (Transfer* const rest = receiver_.matching_queue().give_back(receive).rest) receiver_.replace(receive, *rest);
  receive.state = Transfer::State::idle;
  receive.handle = nullptr;
}

void TcpTransport::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  receiver_.forget(group, up_to_sequence);
}

// The first link there is, whoever opened it, and that one for ever: control messages must not overtake each other.
Link& TcpTransport::control_of(Peer& peer) {
  if (peer.control == nullptr) peer.control = &sender_.open_link(peer, LinkKind::control, 0);
  return *peer.control;
}

void TcpTransport::attach(int peer) {
  Peer& entry = checked_peer(peer);
  if (peer != rank_ && !entry.is_gone() && !entry.saying_goodbye) control_of(entry);
}

void TcpTransport::post(int peer, std::span<const std::byte> message) {
  Peer& entry = checked_peer(peer);
  if (message.size() > control_bytes_max) {
    throw InvalidArgument(fmt::format("rank {}: a control message of {} bytes is too long, at most {} are allowed",
                                      rank_, message.size(), control_bytes_max));
  }
  if (entry.is_gone() || entry.saying_goodbye) return;
  if (peer == rank_) {
    self_controls_.emplace_back(message.begin(), message.end());
    connections_.mark_work();
    return;
  }
  OutgoingFrame frame{.head = encode_control(message)};
  frame.own = std::make_unique_for_overwrite<std::byte[]>(message.size());
  std::copy(message.begin(), message.end(), frame.own.get());
  frame.payload = {frame.own.get(), message.size()};
  connections_.push(control_of(entry), std::move(frame));
}

bool TcpTransport::heard_from(int peer) {
  Peer& entry = checked_peer(peer);
  return std::exchange(entry.frames_told, entry.frames_seen) != entry.frames_seen;
}

bool TcpTransport::is_unfinished(const Link& link) const {
  if (link.state == Link::State::closed) return false;
  // An unauthenticated connection that does not get through its handshake is nobody to wait for; it has a deadline of its own.
  if (!link.is_open()) return link.mine && !peers_[static_cast<std::size_t>(link.peer)].is_gone();
  return !link.output.empty() ||
         (link.mine && link.is_bulk() && !peers_[static_cast<std::size_t>(link.peer)].cts_received.empty());
}

bool TcpTransport::is_flushed() const {
  const auto& links = connections_.links();
  return self_sends_.empty() &&
         std::none_of(links.begin(), links.end(), [this](const auto& link) { return is_unfinished(*link); });
}

bool TcpTransport::poll() {
  bool moved = connections_.work();
  if (!self_sends_.empty() || !self_controls_.empty()) moved |= deliver_to_self();
  settle_failures();
  return moved;
}

// The listener may send to this rank again while it is told.
bool TcpTransport::deliver_to_self() {
  for (std::size_t i = 0; i < self_sends_.size(); ++i) {
    Transfer* const send = self_sends_[i];
    if (send == nullptr) continue;
    self_sends_[i] = nullptr;
    set_stage(*send, Stage::kept_for_self);
    if (receiver_.deliver_to_self(*send)) finish(*send);
  }
  self_sends_.clear();
  for (const std::vector<std::byte>& message : std::exchange(self_controls_, {})) listener_->control(rank_, message);
  return true;
}

bool TcpTransport::has_transfers() const {
  if (sender_.outbound_count() > 0 || receiver_.inbound_count() > 0 || !self_sends_.empty()) return true;
  const auto is_writing = [](const Link* link) { return !link->output.empty(); };
  const auto is_reading = [](const Link* link) { return link->incoming.kind != Incoming::Kind::none; };
  return std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return std::any_of(peer.streams.begin(), peer.streams.end(), is_writing) ||
           std::any_of(peer.incoming.begin(), peer.incoming.end(), is_reading);
  });
}

TcpTransport::Statistics TcpTransport::statistics() const {
  return {.held_bytes = receiver_.matching_queue().held_bytes(),
          .held_bytes_peak = receiver_.held_bytes_peak(),
          .unexpected_count = receiver_.matching_queue().unexpected_count(),
          .link_count = connections_.links().size(),
          .half_open_count = connections_.half_open_count(),
          .turned_away_count = connections_.turned_away_count()};
}

}  // namespace tutti::transport
