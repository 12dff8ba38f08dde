// connect.cpp: making a connection, polled or by a deadline.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <tutti/error.hpp>

#include "wire/loopback.hpp"
#include "wire/socket.hpp"

namespace tutti::wire {

Connecting::Connecting(const Address& peer, const SocketOptions& options)
    : socket_(make_socket(peer.family())), peer_(peer) {
  apply(options, socket_.get());
  if (::connect(socket_.get(), peer.data(), peer.size()) == 0) {
    settle();
  } else if (errno != EINPROGRESS && errno != EINTR) {
    error_ = errno;
    state_ = State::failed;
  }
}

Connecting::State Connecting::check() {
  if (state_ != State::pending) return state_;
  pollfd entry{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (poll(&entry, 1, 0) <= 0) return state_;
  socklen_t bytes = sizeof error_;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error_, &bytes) != 0) error_ = errno;
  if (error_ != 0) {
    state_ = State::failed;
  } else {
    settle();
  }
  return state_;
}

// A connect to a free port of the ephemeral range can connect to itself (TCP's simultaneous open): that means that no process listens.
void Connecting::settle() {
  state_ = State::connected;
  if (local_address(socket_.get()) == peer_) {
    error_ = ECONNREFUSED;
    state_ = State::failed;
  }
}

namespace {

bool worth_another_try(int error) {
  return error == ECONNREFUSED || error == ECONNRESET || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == ETIMEDOUT || error == EADDRNOTAVAIL || error == EAGAIN;
}

void pause_until(TimePoint when) {
  while (poll(nullptr, 0, poll_timeout_ms(std::chrono::steady_clock::now(), when)) != 0) {}
}

}  // namespace

std::pair<UniqueFd, int> connect_once(const Address& peer, TimePoint deadline, const SocketOptions& options) {
  Connecting connecting(peer, options);
  while (connecting.check() == Connecting::State::pending) {
    if (wait_for(connecting.fd(), POLLOUT, deadline) == 0) return {UniqueFd(), ETIMEDOUT};
  }
  if (connecting.check() == Connecting::State::failed) return {UniqueFd(), connecting.error()};
  return {connecting.take(), 0};
}

UniqueFd connect(const Address& peer, TimePoint deadline, const SocketOptions& options) {
  return connect(std::span(&peer, 1), deadline, options);
}

UniqueFd connect(std::span<const Address> peers, TimePoint deadline, const SocketOptions& options) {
  constexpr Duration pause_first = std::chrono::milliseconds(5), pause_most = std::chrono::milliseconds(250);
  // One address that swallows everything must not use up the time of the others.
  const Duration attempt_most = peers.size() > 1 ? Duration(std::chrono::seconds(2)) : Duration::max();
  const TimePoint start = std::chrono::steady_clock::now();
  TimePoint now = start;
  for (Duration pause = pause_first;; pause = std::min(pause * 2, pause_most)) {
    bool again = false;
    std::string causes;
    for (const Address& peer : peers) {
      auto [socket, error] = connect_once(peer, std::min(deadline, deadline_after(now, attempt_most)), options);
      if (error == 0) return std::move(socket);
      again = again || worth_another_try(error);
      // A listener may still come; loopback itself is there, or is not. (::1 may be missing where 127.0.0.1 is not.)
      if (peer.is_loopback() && error == ENETUNREACH) require_loopback();
      causes +=
          fmt::format("{}{}: {}", causes.empty() ? "" : ", ", peer.text(), std::generic_category().message(error));
      now = std::chrono::steady_clock::now();
    }
    if (!again || now >= deadline) {
      throw RendezvousError(
          fmt::format("cannot connect within {:.1f} s ({}); check that the other side runs, that address "
                      "and port are right, and that no firewall is between",
                      std::chrono::duration<double>(now - start).count(), causes));
    }
    pause_until(std::min(deadline, deadline_after(now, pause)));
  }
}

}  // namespace tutti::wire
