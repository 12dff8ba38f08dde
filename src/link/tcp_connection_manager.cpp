// tcp_connection_manager.cpp: epoll, reading, writing, and the end of connections.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_connection_manager.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

namespace tutti::link {

namespace {

// Per connection and poll, so that no connection starves the others, and reading and writing alternate while data is in the cache.
constexpr std::size_t budget_bytes = 1 << 20;

UniqueFd made(int fd, const char* what) {
  if (fd < 0) throw Error(fmt::format("cannot make {}: {}", what, wire::describe_system_error(errno)));
  return UniqueFd(fd);
}

}  // namespace

ConnectionManager::ConnectionManager(Setup setup, ConnectionOwner& owner)
    : setup_(std::move(setup)),
      owner_(owner),
      listener_socket_(std::move(setup_.listener)),
      epoll_(made(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
      control_epoll_(made(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
      wake_all_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")),
      wake_control_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")) {
  epoll_event nested{.events = EPOLLIN, .data = {.ptr = &control_epoll_}};
  epoll_event listener_socket{.events = EPOLLIN | EPOLLET, .data = {.ptr = &listener_socket_}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, control_epoll_.get(), &nested) != 0 ||
      epoll_ctl(control_epoll_.get(), EPOLL_CTL_ADD, listener_socket_->fd(), &listener_socket) != 0) {
    throw Error(fmt::format("cannot watch the listening socket: {}", std::generic_category().message(errno)));
  }
}

ConnectionManager::~ConnectionManager() = default;

void ConnectionManager::watch(Connection& connection, int fd) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &connection}};
  if (epoll_ctl((connection.is_data() ? epoll_ : control_epoll_).get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    fail(connection, fmt::format("epoll refuses the socket: {}", std::generic_category().message(errno)));
  }
}

// Before the socket is closed: a forked child may keep it, and with it epoll's entry, alive.
void ConnectionManager::unwatch(Connection& connection) {
  const int fd = connection.connecting ? connection.connecting->fd() : connection.socket.get();
  if (fd >= 0) epoll_ctl((connection.is_data() ? epoll_ : control_epoll_).get(), EPOLL_CTL_DEL, fd, nullptr);
}

void ConnectionManager::make_ready(Connection& connection) {
  if (!std::exchange(connection.ready, true)) ready_.push_back(&connection);
  (connection.is_data() ? data_waits_ : control_waits_) = true;
}

void ConnectionManager::gather(const UniqueFd& epoll) {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr == &control_epoll_) {
      gather(control_epoll_);
      continue;
    }
    if (event.data.ptr == &listener_socket_) {
      may_accept_ = true;
      continue;
    }
    Connection& connection = *static_cast<Connection*>(event.data.ptr);
    connection.readable |= (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    connection.hung_up |= (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    connection.writable |= (event.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    make_ready(connection);
  }
}

bool ConnectionManager::work() {
  gather(epoll_);
  if (may_accept_) accept_pending();
  bool moved = false;
  working_.swap(ready_);
  for (Connection* connection : working_) {
    connection->ready = false;
    moved |= step(*connection);
  }
  working_.clear();
  if (half_open_count_ > 0) expire_pending();
  publish_work();
  return moved;
}

void ConnectionManager::publish_work() {
  const bool data =
      std::any_of(ready_.begin(), ready_.end(), [](const Connection* connection) { return connection->is_data(); });
  const bool control =
      std::any_of(ready_.begin(), ready_.end(), [](const Connection* connection) { return !connection->is_data(); });
  data_waits_ = data;
  control_waits_ = control || !failures_.empty();
  TimePoint deadline = TimePoint::max();
  if (half_open_count_ > 0) {
    for (const auto& connection : all_) {
      if (!connection->mine && connection->state == Connection::State::handshaking)
        deadline = std::min(deadline, connection->deadline);
    }
  }
  next_deadline_ns_ = deadline.time_since_epoch().count();
}

// An epoll is readable as long as it holds events that no work() has taken.
void ConnectionManager::wait(TimePoint until, Transport::Events events) {
  const bool all = events == Transport::Events::all;
  const UniqueFd& wake = all ? wake_all_ : wake_control_;
  std::array<pollfd, 2> watched{pollfd{.fd = (all ? epoll_ : control_epoll_).get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = wake.get(), .events = POLLIN, .revents = 0}};
  until = std::min(until, TimePoint(Duration(next_deadline_ns_.load())));
  Duration left = std::max(until - setup_.clock.now(), Duration::zero());
  if (control_waits_ || (all && data_waits_)) left = Duration::zero();
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ppoll(watched.data(), watched.size(), until == TimePoint::max() && left > Duration::zero() ? nullptr : &timeout,
        nullptr);
  eventfd_t ignored = 0;
  if ((watched[1].revents & POLLIN) != 0) eventfd_read(wake.get(), &ignored);
}

void ConnectionManager::wake() {
  eventfd_write(wake_all_.get(), 1);
  eventfd_write(wake_control_.get(), 1);
}

bool ConnectionManager::step(Connection& connection) {
  switch (connection.state) {
    case Connection::State::connecting: return connect_step(connection);
    case Connection::State::handshaking: return handshake_step(connection);
    case Connection::State::open: return open_step(connection);
    case Connection::State::closed: break;
  }
  return false;
}

bool ConnectionManager::open_step(Connection& connection) {
  bool moved = connection.writable && flush(connection);
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
    if (connection.output.empty()) break;
    if (moved_bytes >= budget_bytes) {
      make_ready(connection);
      break;
    }
    const wire::Transfer moved = connection.output.write(connection.socket.get());
    moved_bytes += moved.bytes;
    if (moved.closed()) {
      // A goodbye may still wait to be read.
      connection.write_error = moved.reason();
      connection.writable = false;
      connection.readable = connection.hung_up = true;
      make_ready(connection);
      break;
    }
    if (!moved.moved()) connection.writable = false;
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
  if (accepted) --half_open_count_;
  unwatch(connection);
  connection.state = Connection::State::closed;
  connection.connecting.reset();
  connection.handshake.reset();
  connection.socket.reset();
  any_closed_ = true;
  if (reason.empty() || accepted) return;
  failures_.push_back({&connection, std::move(reason)});
  mark_work();
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

bool ConnectionManager::is_acknowledged(const Connection& connection) {
  int waiting_bytes = 0;
  return !connection.is_open() || ioctl(connection.socket.get(), SIOCOUTQ, &waiting_bytes) != 0 || waiting_bytes == 0;
}

void ConnectionManager::stop_listening() {
  if (!listener_socket_) return;
  epoll_ctl(control_epoll_.get(), EPOLL_CTL_DEL, listener_socket_->fd(), nullptr);
  listener_socket_.reset();
  may_accept_ = false;
}

}  // namespace tutti::link
