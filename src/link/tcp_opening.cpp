// tcp_opening.cpp: how connections come to be: connecting, accepting, and the handshake in between.
// SPDX-License-Identifier: Apache-2.0
//
// This rank waits without limit for the answer of a rank it connects to, which may be busy computing; calls have
// deadlines of their own. Unauthenticated connections have a deadline, and there is a limit on how many.
#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "link/tcp_connection_manager.hpp"
#include "link/tcp_frames.hpp"

namespace tutti::link {

namespace {

// A connection that ends within the handshake may have been turned away because there were too many. Where the other rank is
// gone, connecting again fails at once.
constexpr int attempts_max = 4;
// The oldest unauthenticated connection makes room for a new one only after this time: ranks need much less.
constexpr Duration patience = std::chrono::seconds(1);
// Of a bulk frame, as far as is known: what is read along with a payload, beyond its end, is then just the next head.
constexpr std::size_t bulk_head_bytes = 16;

std::size_t lookahead_of(const Connection& connection) {
  return connection.is_bulk() && !connection.mine ? wire::frame_head_bytes + bulk_head_bytes : std::size_t{16} << 10;
}

}  // namespace

Connection& ConnectionManager::open(const ConnectionPurpose& purpose, const wire::Address& address) {
  Connection& connection = *all_.emplace_back(std::make_unique<Connection>());
  connection.purpose = purpose;
  connection.mine = true;
  connection.peer = purpose.to;
  connection.address = address;
  start_connecting(connection);
  return connection;
}

void ConnectionManager::start_connecting(Connection& connection) try {
  ++connection.attempts;
  connection.state = Connection::State::connecting;
  connection.readable = connection.writable = connection.hung_up = false;
  wire::SocketOptions options = setup_.socket;
  // Within one machine there is no path to probe, and the pacing of bbr costs a fifth of the bandwidth.
  if (options.congestion_control.empty() && connection.address.is_loopback()) options.congestion_control = "reno";
  connection.connecting.emplace(connection.address, options);
  make_ready(connection);
  if (connection.connecting->fd() >= 0) watch(connection, connection.connecting->fd());
} catch (const Error& error) {
  fail(connection, error.what());
}

bool ConnectionManager::connect_step(Connection& connection) {
  switch (connection.connecting->check()) {
    case wire::Connecting::State::pending: return false;
    case wire::Connecting::State::failed:
      fail(connection, "connecting failed: " + std::generic_category().message(connection.connecting->error()));
      return true;
    case wire::Connecting::State::connected: break;
  }
  connection.socket = connection.connecting->take();
  connection.connecting.reset();
  connection.state = Connection::State::handshaking;
  connection.handshake = std::make_unique<wire::Handshake>(wire::Handshake::Setup{
      .role = wire::Handshake::Role::initiator, .secret = setup_.secret, .purpose = connection.purpose.encode()});
  connection.readable = connection.writable = true;
  handshake_step(connection);
  return true;
}

bool ConnectionManager::handshake_step(Connection& connection) {
  wire::Handshake& handshake = *connection.handshake;
  std::array<std::byte, 256> buffer;
  bool moved = false;
  for (;;) {
    wire::Transfer step;
    if (!handshake.output().empty()) {
      step = wire::write_some(connection.socket.get(), handshake.output());
      handshake.sent(step.bytes);
    } else if (handshake.state() == wire::Handshake::State::running) {
      step = wire::read_some(connection.socket.get(),
                             std::span(buffer).first(std::min(handshake.wanted(), buffer.size())));
      handshake.feed(std::span(buffer).first(step.bytes));
    } else {
      break;
    }
    if (step.closed()) {
      retry_or_fail(connection, "the connection ended in the handshake: " + step.reason());
      return true;
    }
    if (!step.moved()) return moved;
    moved = true;
  }
  if (handshake.state() == wire::Handshake::State::failed) {
    connection.mine ? fail(connection, handshake.error()) : turn_away(connection);
  } else {
    handshake_done(connection);
  }
  return true;
}

void ConnectionManager::retry_or_fail(Connection& connection, std::string reason) {
  if (!connection.mine) return turn_away(connection);
  if (connection.attempts >= attempts_max) return fail(connection, std::move(reason));
  unwatch(connection);
  connection.handshake.reset();
  connection.socket.reset();
  start_connecting(connection);
}

void ConnectionManager::handshake_done(Connection& connection) {
  if (!connection.mine) {
    const auto purpose = ConnectionPurpose::decode(connection.handshake->peer_purpose());
    if (purpose) {
      connection.purpose = *purpose;
      connection.peer = purpose->from;
    }
    if (!purpose || !owner_.admit(connection)) return turn_away(connection);
    --half_open_count_;
    if (purpose->kind == ConnectionKind::stream) {
      unwatch(connection);
      connection.state = Connection::State::open;
      watch(connection, connection.socket.get());
      if (!connection.is_open()) return;
    }
  }
  connection.handshake.reset();
  connection.state = Connection::State::open;
  connection.input.emplace(lookahead_of(connection));
  // The edge may have come during the handshake.
  connection.readable = connection.writable = true;
  make_ready(connection);
  owner_.connection_opened(connection);
}

// A unauthenticated connection takes a descriptor that the program may need: only so many, as there are.
bool ConnectionManager::is_full() const {
  return half_open_count_ >= std::min(setup_.half_open_max, wire::descriptors_for_unauthenticated());
}

void ConnectionManager::accept_pending() {
  while (!is_full()) {
    std::optional<wire::Accepted> accepted = listener_socket_->accept();
    if (!accepted) {
      may_accept_ = false;
      if (listener_socket_->dropped() > 0 && !std::exchange(told_of_drops_, true))
        setup_.log.warn("a connection was turned away, perhaps of a rank: {}", wire::describe_system_error(EMFILE));
      return;
    }
    Connection& connection = *all_.emplace_back(std::make_unique<Connection>());
    connection.state = Connection::State::handshaking;
    connection.socket = std::move(accepted->socket);
    connection.address = accepted->peer;
    connection.deadline = deadline_after(setup_.clock.now(), setup_.handshake_timeout);
    connection.handshake = std::make_unique<wire::Handshake>(
        wire::Handshake::Setup{.role = wire::Handshake::Role::acceptor, .secret = setup_.secret});
    ++half_open_count_;
    watch(connection, connection.socket.get());
    make_ready(connection);
  }
}

// After their bytes were read, so that a rank that was busy itself does not blame others for it.
void ConnectionManager::expire_pending() {
  const TimePoint now = setup_.clock.now();
  const bool full = may_accept_ && is_full();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Connection& connection = *all_[i];
    if (connection.mine || connection.state != Connection::State::handshaking) continue;
    const TimePoint deadline = full ? connection.deadline - setup_.handshake_timeout + patience : connection.deadline;
    if (now >= deadline) turn_away(connection);
  }
}

void ConnectionManager::turn_away(Connection& connection) {
  ++turned_away_count_;
  fail(connection, {});
}

void ConnectionManager::abandon() {
  for (const auto& connection : all_) {
    connection->state = Connection::State::closed;
    connection->connecting.reset();
    connection->socket.reset();
  }
  any_closed_ = true;
  listener_socket_.reset();
  may_accept_ = false;
  for (UniqueFd* fd : {&epoll_, &control_epoll_, &wake_all_, &wake_control_}) fd->reset();
}

}  // namespace tutti::link
