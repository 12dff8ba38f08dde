// tcp_connection_manager.cpp: opening, reading, writing, and the end of connections.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_connection_manager.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "link/tcp_frames.hpp"

namespace tutti::link {

namespace {

// Per connection and poll, so that no connection starves the others, and reading and writing alternate while data is in the cache.
constexpr std::size_t budget_bytes = 1 << 20;

// A connection that ends within the handshake was turned away because this rank got no time to answer, or there were too many. Where
// the other rank is gone, connecting again fails at once. So many times in a row if it ends so soon that no rank turned it away.
constexpr int attempts_max = 4;
// Of a bulk frame, as far as is known: what is read along with a payload, beyond its end, is then just the next head.
constexpr std::size_t bulk_head_bytes = 16;

std::size_t lookahead_of(const Connection& connection) {
  return connection.is_bulk() && !connection.mine ? wire::frame_head_bytes + bulk_head_bytes : std::size_t{16} << 10;
}

TcpPoller::Side side_of(const Connection& connection) {
  return connection.is_data() ? TcpPoller::Side::data : TcpPoller::Side::control;
}

}  // namespace

ConnectionManager::ConnectionManager(Setup setup, ConnectionOwner& owner)
    : setup_(std::move(setup)), owner_(owner), listener_socket_(std::move(setup_.listener)) {
  if (!poller_.watch(listener_socket_->fd(), EPOLLIN | EPOLLET, &listener_socket_, TcpPoller::Side::control))
    throw Error(fmt::format("cannot watch the listening socket: {}", std::generic_category().message(errno)));
}

ConnectionManager::~ConnectionManager() = default;

void ConnectionManager::watch(Connection& connection, int fd) {
  if (!poller_.watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &connection, side_of(connection)))
    fail(connection, fmt::format("epoll refuses the socket: {}", std::generic_category().message(errno)));
}

// Before the socket is closed: a forked child may keep it, and with it epoll's entry, alive.
void ConnectionManager::unwatch(Connection& connection) {
  const int fd = connection.connecting ? connection.connecting->fd() : connection.channel.fd();
  if (fd >= 0) poller_.unwatch(fd, side_of(connection));
}

void ConnectionManager::make_ready(Connection& connection) {
  if (!std::exchange(connection.ready, true)) ready_.push_back(&connection);
  poller_.mark_work(side_of(connection));
}

void ConnectionManager::find_ready() {
  poller_.look([this](void* owner, std::uint32_t events) {
    if (owner == &listener_socket_) {
      may_accept_ = true;
      return;
    }
    Connection& connection = *static_cast<Connection*>(owner);
    connection.readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    connection.hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    connection.writable |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    make_ready(connection);
  });
}

bool ConnectionManager::work() {
  find_ready();
  if (may_accept_) accept_pending();
  bool moved = false;
  working_.swap(ready_);
  for (Connection* connection : working_) {
    connection->ready = false;
    moved |= step(*connection);
  }
  working_.clear();
  if (counts_.half_open > 0) expire_pending();
  publish_work();
  return moved;
}

void ConnectionManager::publish_work() {
  const auto is_data = [](const Connection* connection) { return connection->is_data(); };
  TimePoint deadline = TimePoint::max();
  if (counts_.half_open > 0) {
    for (const auto& connection : all_) {
      if (!connection->mine && connection->state == Connection::State::handshaking)
        deadline = std::min(deadline, connection->deadline);
    }
  }
  poller_.set_waiting(std::ranges::any_of(ready_, is_data), !std::ranges::all_of(ready_, is_data) || !failures_.empty(),
                      deadline);
}

bool ConnectionManager::step(Connection& connection) {
  if (connection.state == Connection::State::connecting) return connect_step(connection);
  if (connection.state == Connection::State::handshaking) return handshake_step(connection);
  bool moved = connection.is_open() && connection.writable && flush(connection);
  if (connection.is_open() && connection.readable)
    moved |= read(connection, {.budget_bytes = budget_bytes, .to_the_end = connection.hung_up});
  return moved;
}

bool ConnectionManager::read(Connection& connection, const Input::Limits& limits) try {
  const Input::Result result = connection.input->read(connection, owner_, limits);
  if (!connection.is_open()) return result.bytes > 0;
  switch (result.status) {
    case Input::Status::drained:
      connection.readable = false;
      if (!connection.write_error.empty()) fail(connection, connection.write_error);
      break;
    case Input::Status::more: make_ready(connection); break;
    case Input::Status::closed: fail(connection, result.last.reason()); break;
  }
  return result.bytes > 0;
} catch (const Error& error) {  // the peer sent nonsense
  fail(connection, error.what());
  return true;
}

void ConnectionManager::drain(Connection& connection) {
  constexpr int rounds_max = 64;  // a peer that goes on sending is not listened to for ever
  connection.readable = true;
  for (int round = 0; round < rounds_max && connection.is_open() && connection.readable; ++round) {
    read(connection, {.budget_bytes = budget_bytes, .to_the_end = true});
  }
}

void ConnectionManager::push(Connection& connection, OutgoingFrame frame) {
  if (connection.state == Connection::State::closed) return;
  connection.output.push(std::move(frame));
  if (connection.is_open() && connection.writable && connection.output.count() == 1) flush(connection);
}

bool ConnectionManager::flush(Connection& connection) {
  std::size_t moved_bytes = 0;
  while (connection.is_open() && connection.writable) {
    if (!connection.has_unsent()) break;
    if (moved_bytes >= budget_bytes) {
      make_ready(connection);
      break;
    }
    const wire::Transfer moved = connection.output.write(connection.channel);
    moved_bytes += moved.bytes;
    if (moved.closed()) {
      // A goodbye may still wait to be read.
      connection.write_error = moved.reason();
      connection.writable = false;
      connection.readable = connection.hung_up = true;
      make_ready(connection);
      break;
    }
    if (!moved.moved() || connection.channel.has_unsent()) connection.writable = false;
    while (OutgoingFrame* frame = connection.output.written()) {
      owner_.frame_written(connection, *frame);
      connection.output.pop();
    }
  }
  return moved_bytes > 0;
}

void ConnectionManager::fail(Connection& connection, std::string reason) {
  if (connection.state == Connection::State::closed) return;
  const bool accepted = !connection.mine && connection.state == Connection::State::handshaking;
  if (accepted) --counts_.half_open;
  unwatch(connection);
  connection.state = Connection::State::closed;
  connection.connecting.reset();
  connection.channel.close();
  any_closed_ = true;
  if (reason.empty() || accepted) return;
  failures_.push_back({&connection, std::move(reason)});
  poller_.mark_work(TcpPoller::Side::control);
}

void ConnectionManager::sweep() {
  if (!any_closed_) return;
  any_closed_ = false;
  const auto is_over = [](const auto& connection) {
    return connection->state == Connection::State::closed && !connection->attached;
  };
  std::erase_if(ready_, is_over);
  std::erase_if(all_, is_over);
}

bool is_acknowledged(const Connection& connection) {
  int waiting_bytes = 0;
  return !connection.is_open() || ioctl(connection.channel.fd(), SIOCOUTQ, &waiting_bytes) != 0 || waiting_bytes == 0;
}

void ConnectionManager::stop_listening() {
  if (!listener_socket_) return;
  poller_.unwatch(listener_socket_->fd(), TcpPoller::Side::control);
  listener_socket_.reset();
  may_accept_ = false;
}

// ---- opening: connecting, accepting, and the handshake in between
//
// This rank waits without limit for the answer of a rank it connects to, which may be busy computing; calls have
// deadlines of their own. Unauthenticated connections have a deadline, and there is a limit on how many.

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
  connection.since = setup_.clock.now();
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
  connection.channel = wire::Channel(connection.connecting->take(), {.role = wire::Handshake::Role::initiator,
                                                                     .secret = setup_.secret,
                                                                     .encryption = setup_.encryption,
                                                                     .purpose = connection.purpose.encode()});
  connection.connecting.reset();
  connection.state = Connection::State::handshaking;
  connection.readable = connection.writable = true;
  handshake_step(connection);
  return true;
}

bool ConnectionManager::handshake_step(Connection& connection) {
  wire::Channel& channel = connection.channel;
  const wire::Transfer step = channel.go_on_opening();
  if (channel.state() == wire::Channel::State::opening) return false;
  if (channel.state() == wire::Channel::State::open) {
    handshake_done(connection);
  } else if (step.closed() && step.tls == nullptr) {
    retry_or_fail(connection, "the connection ended in the handshake: " + step.reason());
  } else {
    connection.mine ? fail(connection, channel.error()) : turn_away(connection);
  }
  return true;
}

void ConnectionManager::retry_or_fail(Connection& connection, std::string reason) {
  if (!connection.mine) return turn_away(connection);
  if (setup_.clock.now() - connection.since >= wire::unauthenticated_time_min) connection.attempts = 0;
  if (connection.attempts >= attempts_max) return fail(connection, std::move(reason));
  unwatch(connection);
  connection.channel.close();
  start_connecting(connection);
}

void ConnectionManager::handshake_done(Connection& connection) {
  if (!connection.mine) {
    const auto purpose = ConnectionPurpose::decode(connection.channel.peer_purpose());
    if (purpose) {
      connection.purpose = *purpose;
      connection.peer = purpose->from;
    }
    if (!purpose || !owner_.admit(connection)) return turn_away(connection);
    --counts_.half_open;
    if (purpose->kind == ConnectionKind::stream) {
      unwatch(connection);
      connection.state = Connection::State::open;
      watch(connection, connection.channel.fd());
      if (!connection.is_open()) return;
    }
  }
  connection.state = Connection::State::open;
  connection.input.emplace(lookahead_of(connection));
  // The edge may have come during the handshake.
  connection.readable = connection.writable = true;
  make_ready(connection);
  owner_.connection_opened(connection);
}

// An unauthenticated connection takes a descriptor that the program may need: only so many, as there are.
bool ConnectionManager::is_full() const {
  return counts_.half_open >= std::min(setup_.half_open_max, wire::descriptors_for_unauthenticated());
}

void ConnectionManager::accept_pending() {
  while (!is_full()) {
    std::optional<wire::Accepted> accepted = listener_socket_->accept();
    if (!accepted) {
      may_accept_ = false;
      if (listener_socket_->dropped() > 0 && !std::exchange(told_of_drops_, true))
        setup_.log.warn("a connection was turned away, perhaps of a rank: {}", describe_system_error(EMFILE));
      return;
    }
    Connection& connection = *all_.emplace_back(std::make_unique<Connection>());
    connection.state = Connection::State::handshaking;
    connection.channel = wire::Channel(
        std::move(accepted->socket),
        {.role = wire::Handshake::Role::acceptor, .secret = setup_.secret, .encryption = setup_.encryption});
    connection.address = accepted->peer;
    connection.since = setup_.clock.now();
    connection.deadline = deadline_after(connection.since, setup_.handshake_timeout);
    ++counts_.half_open;
    watch(connection, connection.channel.fd());
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
    if (connection.channel.peer_is_proven()) continue;  // TLS goes on, and the peer counts on this connection
    const TimePoint deadline = full ? connection.since + wire::unauthenticated_time_min : connection.deadline;
    if (now >= deadline) turn_away(connection);
  }
}

void ConnectionManager::turn_away(Connection& connection) {
  ++counts_.turned_away;
  fail(connection, {});
}

}  // namespace tutti::link
