// tcp_link.cpp: frames, control messages, goodbyes and losses over TCP.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_link.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::link {

namespace {

// Of one stream, waiting to be written. More would only hold up a message that is cancelled.
constexpr std::size_t queued_frames_max = 64;

}  // namespace

void check(const TcpOptions& options) {
  const auto reject = [](const char* name, std::int64_t value, const char* range) {
    throw InvalidArgument(fmt::format("tcp option {} = {} is out of range: {}", name, value, range));
  };
  if (options.streams < 1 || options.streams > 64) reject("streams", options.streams, "1 to 64");
  if (options.eager_bytes_max < 0) reject("eager_bytes_max", options.eager_bytes_max, "0 or more");
  if (options.credit_bytes < 2 * credit_cost(options.eager_bytes_max)) {
    reject("credit_bytes", options.credit_bytes, "room for two eager messages at least");
  }
  if (options.fragment_bytes_max < 1 ||
      options.fragment_bytes_max > static_cast<std::int64_t>(frame_payload_bytes_max)) {
    reject("fragment_bytes_max", options.fragment_bytes_max, "1 to 2^30");
  }
  if (options.half_open_max < 1) reject("half_open_max", 0, "1 or more");
}

wire::Listener open_listener(const wire::Address& address, const TcpOptions& options) {
  return wire::Listener(address, {.socket = options.socket});
}

TcpLink::TcpLink(TcpSetup setup)
    : rank_(setup.rank),
      world_(setup.world),
      options_((check(setup.options), setup.options)),
      clock_(setup.clock),
      peers_(setup.table.size()),
      connections_({.listener = std::move(setup.listener),
                    .secret = setup.secret,
                    .encryption = options_.encryption,
                    .clock = setup.clock,
                    .socket = options_.socket,
                    .handshake_timeout = options_.handshake_timeout,
                    .half_open_max = options_.half_open_max,
                    .log = setup.log},
                   *this) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].rank = static_cast<int>(i);
    peers_[i].address = setup.table[i];
  }
}

TcpLink::~TcpLink() = default;

Link::Limits TcpLink::limits() const {
  return {.eager_bytes_max = options_.eager_bytes_max,
          .credit_bytes = options_.credit_bytes,
          .fragment_bytes_max = options_.fragment_bytes_max,
          .bulk_has_own_channel = true};
}

Connection& TcpLink::open(TcpPeer& peer, ConnectionKind kind, std::uint32_t stream) {
  Connection& connection = connections_.open(
      {.world = world_, .from = rank_, .to = peer.rank, .kind = kind, .stream = stream}, peer.address);
  connection.attached = true;
  return connection;
}

// ---- sending

// nullptr: no room, or no way back.
Connection* TcpLink::connection_for(TcpPeer& peer, FrameOrder order) {
  if (order == FrameOrder::reply) {
    const auto is_first = [](const Connection* connection) {
      return connection->purpose.kind == ConnectionKind::stream && connection->purpose.stream == 0;
    };
    const auto found = std::ranges::find_if(peer.incoming, is_first);
    return found != peer.incoming.end() ? *found : nullptr;
  }
  if (order == FrameOrder::message) {
    if (peer.streams.empty()) peer.streams.push_back(&open(peer, ConnectionKind::stream, 0));
    return peer.streams[0]->output.count() < queued_frames_max ? peer.streams[0] : nullptr;
  }
  prepare_bulk(peer.rank);
  const auto idle = std::find_if(peer.streams.begin() + 1, peer.streams.end(),
                                 [](const Connection* connection) { return connection->output.empty(); });
  return idle != peer.streams.end() ? *idle : nullptr;
}

// Opened when a message is announced, so that its bytes need not wait for the handshake once they are asked for.
void TcpLink::prepare_bulk(int rank) {
  TcpPeer& peer = peer_at(rank);
  while (peer.streams.size() <= static_cast<std::size_t>(options_.streams)) {
    peer.streams.push_back(&open(peer, ConnectionKind::stream, static_cast<std::uint32_t>(peer.streams.size())));
  }
}

Link::Taken TcpLink::send(int rank, FrameOrder order, const Frame& frame, void* owner) {
  TcpPeer& peer = peer_at(rank);
  if (peer.is_gone()) return Taken::copied;  // nobody to send it to
  Connection* const connection = connection_for(peer, order);
  if (connection == nullptr) return order == FrameOrder::reply ? Taken::copied : Taken::no_room;
  const Checksum checksum = options_.payload_checksums ? Checksum::on : Checksum::off;
  connections_.push(*connection, {.head = encode(frame, checksum), .payload = frame.payload});
  if (connection->output.empty()) return Taken::copied;
  // Only now, so that sent() is not called from inside this call.
  connection->output.back().owner = owner;
  return Taken::queued;
}

void TcpLink::frame_written(Connection&, OutgoingFrame& frame) {
  if (frame.owner != nullptr) listener_->sent(frame.owner, static_cast<std::int64_t>(frame.payload.size()));
}

std::size_t TcpLink::withdraw(int rank, const void* owner) {
  std::size_t vanished = 0;
  for (Connection* connection : peer_at(rank).streams) vanished += connection->output.withdraw(owner);
  return vanished;
}

// The first connection there is, opened by either side, and that one for ever: control messages must not overtake each other.
Connection& TcpLink::control_of(TcpPeer& peer) {
  if (peer.control == nullptr) peer.control = &open(peer, ConnectionKind::control, 0);
  return *peer.control;
}

void TcpLink::attach(int rank) {
  TcpPeer& peer = peer_at(rank);
  if (!peer.is_gone() && !peer.saying_goodbye) control_of(peer);
}

void TcpLink::post(int rank, std::span<const std::byte> message) {
  TcpPeer& peer = peer_at(rank);
  if (peer.is_gone() || peer.saying_goodbye) return;
  OutgoingFrame frame{.head = encode({.type = control_frame, .payload = message}, Checksum::on)};
  frame.own = std::make_unique_for_overwrite<std::byte[]>(message.size());
  std::copy(message.begin(), message.end(), frame.own.get());
  frame.payload = {frame.own.get(), message.size()};
  connections_.push(control_of(peer), std::move(frame));
}

// ---- what comes in

bool TcpLink::poll() {
  const bool moved = connections_.work();
  settle_failures();
  return moved;
}

bool TcpLink::wait(TimePoint until, Transport::Events events) {
  connections_.poller().wait(until, events, clock_);
  return true;
}

bool TcpLink::heard_from(int rank) {
  TcpPeer& peer = peer_at(rank);
  return std::exchange(peer.frames_told, peer.frames_seen) != peer.frames_seen;
}

bool TcpLink::admit(Connection& connection) {
  const ConnectionPurpose& purpose = connection.purpose;
  const auto size = static_cast<int>(peers_.size());
  if (purpose.world != world_ || purpose.to != rank_ || purpose.from < 0 || purpose.from >= size) return false;
  if (purpose.from == rank_ || purpose.stream > static_cast<std::uint32_t>(options_.streams)) return false;
  TcpPeer& peer = peer_at(connection.peer);
  if (peer.is_gone()) return false;
  return std::ranges::none_of(peer.incoming, [&](const Connection* other) {
    return other->purpose.kind == purpose.kind && other->purpose.stream == purpose.stream;
  });
}

// A rank that connects while this one is on its way out is told so, instead of being turned away: it would take that for a loss.
void TcpLink::connection_opened(Connection& connection) {
  TcpPeer& peer = peer_at(connection.peer);
  if (!connection.mine) {
    peer.was_reached = true;
    connection.attached = true;
    peer.incoming.push_back(&connection);
    if (connection.purpose.kind == ConnectionKind::control && peer.control == nullptr) peer.control = &connection;
  }
  if (says_goodbye_) say_goodbye(connection);
}

void TcpLink::frame_begins(Connection& connection, const wire::FrameHeader& header, std::span<const std::byte> extra) {
  TcpPeer& peer = peer_at(connection.peer);
  ++peer.frames_seen;
  peer.was_reached = true;
  connection.payload = Connection::Payload::discarded;
  const bool is_stream = connection.purpose.kind == ConnectionKind::stream;
  if (header.type == goodbye_frame) return goodbye(connection, decode_goodbye(extra));
  if (header.type == control_frame && !is_stream) return control_begins(connection, header.payload_bytes);
  if (header.type == 0 || header.type > frame_type_max || !is_stream) {
    throw MalformedMessage(
        fmt::format("a frame of type {} does not belong on the {}", header.type, connection.purpose.text()));
  }
  const Frame frame{.type = header.type, .head = extra};
  if (header.payload_bytes == 0) return listener_->frame(connection.peer, frame);
  connection.landing = listener_->frame_begins(connection.peer, frame, static_cast<std::int64_t>(header.payload_bytes));
  connection.payload = Connection::Payload::frame;
}

void TcpLink::control_begins(Connection& connection, std::uint64_t bytes) {
  if (bytes > control_bytes_max) {
    throw MalformedMessage(
        fmt::format("a control message claims {} bytes, at most {} are allowed", bytes, control_bytes_max));
  }
  connection.control.resize(bytes);
  connection.payload = Connection::Payload::control;
}

std::byte* TcpLink::payload_place(Connection& connection) {
  switch (connection.payload) {
    case Connection::Payload::frame: return listener_->landing(connection.landing);
    case Connection::Payload::control: return connection.control.data();
    case Connection::Payload::discarded: break;
  }
  return nullptr;
}

void TcpLink::frame_ends(Connection& connection) {
  const auto payload = std::exchange(connection.payload, Connection::Payload::discarded);
  if (payload == Connection::Payload::frame) listener_->frame_ends(connection.landing);
  if (payload == Connection::Payload::control) listener_->control(connection.peer, connection.control);
}

// ---- goodbyes and losses

// The peer may not have seen all of this rank's connections yet: one that waits for its handshake there may hold data. So it is told
// how many there are.
void TcpLink::say_goodbye(Connection& connection) {
  const auto count = std::ranges::count_if(connections_.all(), [&](const auto& other) {
    return other->mine && other->peer == connection.peer && other->is_open();
  });
  connections_.push(connection, {.head = encode_goodbye(static_cast<std::uint64_t>(count))});
}

// The other side writes nothing more on this connection, and wants nothing more from it.
void TcpLink::goodbye(Connection& connection, std::uint64_t opened_connections) {
  TcpPeer& peer = peer_at(connection.peer);
  connection.parted = true;
  peer.saying_goodbye = true;
  peer.connections_to_end = std::max(peer.connections_to_end, opened_connections);
  connections_.fail(connection, "it said goodbye");
}

void TcpLink::settle_failures() {
  for (auto failures = connections_.take_failures(); !failures.empty(); failures = connections_.take_failures()) {
    for (const ConnectionManager::Failure& failure : failures) connection_ended(*failure.connection, failure.reason);
  }
  connections_.sweep();
}

// What the peer wrote on its other connections before it went is read first: it may say goodbye there.
void TcpLink::connection_ended(Connection& connection, const std::string& reason) {
  TcpPeer& peer = peer_at(connection.peer);
  if (peer.is_gone()) return;
  // The peer closes a connection on which it has read this rank's goodbye. What the others hold is still to be written and read.
  if (says_goodbye_) return;
  if (!peer.saying_goodbye) {
    std::vector<Connection*> others;
    peer.for_each_connection([&](Connection& other) { others.push_back(&other); });
    for (Connection* other : others) connections_.drain(*other);
  }
  if (peer.saying_goodbye) {
    part_if_done(peer);
  } else {
    lose(peer, connection, reason);
  }
}

// Each connection that the peer had opened ends with a goodbye, behind what it carried. One of them may still wait for its handshake
// here, with what it holds; one that ended earlier (a repeated attempt, say) is not among them.
void TcpLink::part_if_done(TcpPeer& peer) {
  const auto ended = std::ranges::count_if(peer.incoming, [](const Connection* c) { return c->parted; });
  bool open = static_cast<std::uint64_t>(ended) < peer.connections_to_end;
  peer.for_each_connection([&](const Connection& connection) { open |= connection.is_open(); });
  if (open) return;
  disconnect(peer, TcpPeer::Standing::parted);
  listener_->parted(peer.rank);
}

void TcpLink::lose(TcpPeer& peer, const Connection& connection, const std::string& reason) {
  const std::string cause = fmt::format("{} to {}: {}", connection.purpose.text(), peer.address.text(), reason);
  disconnect(peer, TcpPeer::Standing::lost);
  peer.was_reached ? listener_->lost(peer.rank, cause) : listener_->unreachable(peer.rank, cause);
}

void TcpLink::disconnect(TcpPeer& peer, TcpPeer::Standing standing) {
  peer.standing = standing;
  peer.for_each_connection([&](Connection& connection) {
    connections_.fail(connection, {});
    connection.output.clear();
    connection.attached = false;
  });
  peer.control = nullptr;
  peer.streams.clear();
  peer.incoming.clear();
}

// ---- the end

bool TcpLink::is_unfinished(const Connection& connection) const {
  if (connection.state == Connection::State::closed || !is_waited_for(connection)) return false;
  if (connection.is_open()) return connection.has_unsent();
  // A connection that came in and does not get through its handshake is not waited for; it has a deadline of its own.
  return connection.mine && !peers_[static_cast<std::size_t>(connection.peer)].is_gone();
}

// A peer that is stopped takes nothing, but its kernel keeps the connection.
bool TcpLink::is_waited_for(const Connection& connection) const {
  return connection.peer < 0 || !peers_[static_cast<std::size_t>(connection.peer)].is_given_up;
}

bool TcpLink::is_flushed() const {
  return std::ranges::none_of(connections_.all(),
                              [this](const auto& connection) { return is_unfinished(*connection); });
}

template <class Unfinished>
void TcpLink::work_until(TimePoint deadline, Unfinished unfinished) {
  while (std::ranges::any_of(connections_.all(), [&](const auto& connection) { return unfinished(*connection); })) {
    const TimePoint now = clock_.now();
    if (now >= deadline) return;
    // An acknowledgement makes no event: look again soon.
    connections_.poller().wait(std::min(deadline, now + std::chrono::milliseconds(1)), Transport::Events::all, clock_);
    connections_.work();
    settle_failures();
  }
}

// A peer that has read a goodbye has read everything before it. The listening socket is closed last, so that a rank that is turned
// away finds the goodbye on another connection.
void TcpLink::close(TimePoint deadline) {
  if (std::exchange(closed_, true)) return;
  says_goodbye_ = true;
  for (const auto& connection : connections_.all()) {
    if (connection->is_open()) say_goodbye(*connection);
  }
  work_until(deadline,
             [this](const Connection& connection) { return connection.is_open() && is_unfinished(connection); });
  work_until(deadline, [this](const Connection& connection) {
    return is_waited_for(connection) && !is_acknowledged(connection);
  });
  connections_.stop_listening();
  for (TcpPeer& peer : peers_) {
    if (!peer.is_gone()) disconnect(peer, TcpPeer::Standing::parted);
  }
  for (const auto& connection : connections_.all()) connections_.fail(*connection, {});
  settle_failures();
}

TcpLink::Statistics TcpLink::statistics() const {
  return {.connection_count = connections_.all().size(),
          .half_open_count = connections_.counts().half_open,
          .turned_away_count = connections_.counts().turned_away};
}

}  // namespace tutti::link
