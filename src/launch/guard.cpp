// guard.cpp: tuttirun's side of the guard, and how the guard is started.
// SPDX-License-Identifier: Apache-2.0
#include "launch/guard.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "base/start_thread.hpp"
#include "launch/guard_loop.hpp"

namespace tutti::launch {

Guard::Guard(GuardPlan& plan) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(fmt::format("cannot make a socket: {}", describe_system_error(errno)));
  socket_.reset(ends[0]);
  UniqueFd other(ends[1]);
  sigset_t none;
  sigemptyset(&none);
  static_cast<void>(
      made(signalfd(-1, &none, SFD_CLOEXEC), "a descriptor for signals"));  // the guard has nobody to tell
  id_ = fork();
  if (id_ == 0) {
    socket_.reset();  // or the guard would not see it close
    run_guard(plan, other.get());
  }
  if (id_ < 0) throw Error(fmt::format("cannot start the process that guards the ranks: {}", why_not_started(errno)));
}

Guard::Received Guard::receive(GuardMessage& message) {
  while (true) {
    const ssize_t bytes = recv(socket_.get(), &message, sizeof(message), MSG_DONTWAIT);
    if (bytes == sizeof(message)) return Received::message;
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return Received::nothing;
    return Received::closed;
  }
}

void Guard::send(const GuardMessage& message) {
  // Few and small, so there is always room; if the guard is gone, receive() says so.
  while (::send(socket_.get(), &message, sizeof(message), MSG_NOSIGNAL) < 0 && errno == EINTR) {}
}

}  // namespace tutti::launch
