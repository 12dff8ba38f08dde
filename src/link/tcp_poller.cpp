// tcp_poller.cpp: which sockets have something to do, and how a thread sleeps until one has.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_poller.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"

namespace tutti::link {
TcpPoller::TcpPoller()
    : epoll_(made(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
      control_epoll_(made(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
      wake_all_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")),
      wake_control_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")) {
  if (!watch(control_epoll_.get(), EPOLLIN, &control_epoll_, Side::data))
    throw Error(fmt::format("cannot watch an epoll instance: {}", describe_system_error(errno)));
}

bool TcpPoller::watch(int fd, std::uint32_t events, void* owner, Side side) {
  epoll_event event{.events = events, .data = {.ptr = owner}};
  return epoll_ctl(epoll_of(side).get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void TcpPoller::unwatch(int fd, Side side) { epoll_ctl(epoll_of(side).get(), EPOLL_CTL_DEL, fd, nullptr); }

void TcpPoller::set_waiting(bool data, bool control, TimePoint deadline) {
  data_waits_ = data;
  control_waits_ = control;
  next_deadline_ns_ = deadline.time_since_epoch().count();
}

// An epoll is readable as long as it holds events that no look() has taken.
void TcpPoller::wait(TimePoint until, Transport::Events events, const Clock& clock) {
  const bool all = events == Transport::Events::all;
  const ProcessFd& wake = all ? wake_all_ : wake_control_;
  std::array<pollfd, 2> watched{pollfd{.fd = (all ? epoll_ : control_epoll_).get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = wake.get(), .events = POLLIN, .revents = 0}};
  until = std::min(until, TimePoint(Duration(next_deadline_ns_.load())));
  Duration left = std::max(until - clock.now(), Duration::zero());
  if (control_waits_ || (all && data_waits_)) left = Duration::zero();
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ppoll(watched.data(), watched.size(), until == TimePoint::max() && left > Duration::zero() ? nullptr : &timeout,
        nullptr);
  eventfd_t ignored = 0;
  if ((watched[1].revents & POLLIN) != 0) eventfd_read(wake.get(), &ignored);
}

void TcpPoller::wake() {
  eventfd_write(wake_all_.get(), 1);
  eventfd_write(wake_control_.get(), 1);
}

}  // namespace tutti::link
