// tcp_connection_manager.cpp: epoll, reading, writing, and the end of links.
// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_connection_manager.hpp"

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

namespace tutti::transport {

namespace {

// Per link and poll, so that no link starves the others, and reading and writing alternate while data is in the cache.
constexpr std::size_t budget_bytes = 1 << 20;

UniqueFd made(int fd, const char* what) {
  if (fd < 0) throw Error(fmt::format("cannot make {}: {}", what, wire::describe_system_error(errno)));
  return UniqueFd(fd);
}

}  // namespace

ConnectionManager::ConnectionManager(Setup setup, LinkOwner& owner)
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

void ConnectionManager::watch(Link& link, int fd) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &link}};
  if (epoll_ctl((link.is_data() ? epoll_ : control_epoll_).get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    fail(link, fmt::format("epoll refuses the socket: {}", std::generic_category().message(errno)));
  }
}

// Before the socket is closed: a forked child may keep it, and with it epoll's entry, alive.
void ConnectionManager::unwatch(Link& link) {
  const int fd = link.connecting ? link.connecting->fd() : link.socket.get();
  if (fd >= 0) epoll_ctl((link.is_data() ? epoll_ : control_epoll_).get(), EPOLL_CTL_DEL, fd, nullptr);
}

void ConnectionManager::make_ready(Link& link) {
  if (!std::exchange(link.ready, true)) ready_.push_back(&link);
  (link.is_data() ? data_waits_ : control_waits_) = true;
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
    Link& link = *static_cast<Link*>(event.data.ptr);
    link.readable |= (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    link.hung_up |= (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    link.writable |= (event.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    make_ready(link);
  }
}

bool ConnectionManager::work() {
  gather(epoll_);
  if (may_accept_) accept_pending();
  bool moved = false;
  working_.swap(ready_);
  for (Link* link : working_) {
    link->ready = false;
    moved |= step(*link);
  }
  working_.clear();
  if (half_open_count_ > 0) expire_pending();
  publish_work();
  return moved;
}

void ConnectionManager::publish_work() {
  const bool data = std::any_of(ready_.begin(), ready_.end(), [](const Link* link) { return link->is_data(); });
  const bool control = std::any_of(ready_.begin(), ready_.end(), [](const Link* link) { return !link->is_data(); });
  data_waits_ = data;
  control_waits_ = control || !failures_.empty();
  TimePoint deadline = TimePoint::max();
  if (half_open_count_ > 0) {
    for (const auto& link : links_) {
      if (!link->mine && link->state == Link::State::handshaking) deadline = std::min(deadline, link->deadline);
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

bool ConnectionManager::step(Link& link) {
  switch (link.state) {
    case Link::State::connecting: return connect_step(link);
    case Link::State::handshaking: return handshake_step(link);
    case Link::State::open: return open_step(link);
    case Link::State::closed: break;
  }
  return false;
}

bool ConnectionManager::open_step(Link& link) {
  bool moved = link.writable && flush(link);
  if (link.is_open() && link.readable) moved |= read(link, {.budget_bytes = budget_bytes, .to_the_end = link.hung_up});
  return moved;
}

bool ConnectionManager::read(Link& link, const Input::Limits& limits) try {
  const Input::Result result = link.input->read(link, owner_, limits);
  if (!link.is_open()) return result.bytes > 0;
  switch (result.status) {
    case Input::Status::drained:
      link.readable = false;
      if (!link.write_error.empty()) fail(link, link.write_error);
      break;
    case Input::Status::more: make_ready(link); break;
    case Input::Status::closed: fail(link, result.last.reason()); break;
  }
  return result.bytes > 0;
} catch (const MalformedMessage& error) {
  fail(link, error.what());
  return true;
}

void ConnectionManager::drain(Link& link) {
  constexpr int rounds_max = 64;  // a peer that goes on sending is not listened to for ever
  link.readable = true;
  for (int round = 0; round < rounds_max && link.is_open() && link.readable; ++round) {
    read(link, {.budget_bytes = budget_bytes, .to_the_end = true});
  }
}

void ConnectionManager::push(Link& link, OutgoingFrame frame) {
  if (link.state == Link::State::closed) return;
  link.output.push(std::move(frame));
  if (link.is_open() && link.writable && link.output.count() == 1) flush(link);
}

bool ConnectionManager::flush(Link& link) {
  std::size_t moved_bytes = 0;
  while (link.is_open() && link.writable) {
    if (link.output.empty() && !(link.is_bulk() && link.mine && owner_.refill(link))) break;
    if (moved_bytes >= budget_bytes) {
      make_ready(link);
      break;
    }
    const wire::Transfer moved = link.output.write(link.socket.get());
    moved_bytes += moved.bytes;
    if (moved.closed()) {
      // A goodbye may still wait to be read.
      link.write_error = moved.reason();
      link.writable = false;
      link.readable = link.hung_up = true;
      make_ready(link);
      break;
    }
    if (!moved.moved()) link.writable = false;
    while (OutgoingFrame* frame = link.output.written()) {
      owner_.frame_written(link, *frame);
      link.output.pop();
    }
  }
  return moved_bytes > 0;
}

void ConnectionManager::fail(Link& link, std::string reason) {
  if (link.state == Link::State::closed) return;
  const bool accepted = !link.mine && link.state == Link::State::handshaking;
  if (accepted) --half_open_count_;
  unwatch(link);
  link.state = Link::State::closed;
  link.connecting.reset();
  link.handshake.reset();
  link.socket.reset();
  any_closed_ = true;
  if (reason.empty() || accepted) return;
  failures_.push_back({&link, std::move(reason)});
  mark_work();
}

void ConnectionManager::sweep() {
  if (!any_closed_) return;
  any_closed_ = false;
  const auto is_over = [](const auto& link) { return link->state == Link::State::closed && !link->attached; };
  std::erase_if(ready_, is_over);
  std::erase_if(links_, is_over);
}

bool ConnectionManager::is_acknowledged(const Link& link) {
  int waiting_bytes = 0;
  return !link.is_open() || ioctl(link.socket.get(), SIOCOUTQ, &waiting_bytes) != 0 || waiting_bytes == 0;
}

void ConnectionManager::stop_listening() {
  if (!listener_socket_) return;
  epoll_ctl(control_epoll_.get(), EPOLL_CTL_DEL, listener_socket_->fd(), nullptr);
  listener_socket_.reset();
  may_accept_ = false;
}

}  // namespace tutti::transport
