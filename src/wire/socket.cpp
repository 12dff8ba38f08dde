// socket.cpp: the system calls behind socket.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "wire/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "base/no_cancellation.hpp"

namespace tutti::wire {

namespace {

std::string errno_text(int error) { return describe_system_error(error); }

bool set_option(int socket, int level, int name, int value) {
  return setsockopt(socket, level, name, &value, sizeof value) == 0;
}

int whole_seconds_up(Duration duration) {
  return static_cast<int>(
      std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(duration).count(), 1, 32767));
}

UniqueFd open_reserve() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

Transfer outcome(ssize_t result, bool zero_is_end) {
  if (result > 0 || (result == 0 && !zero_is_end)) {
    return {.status = Transfer::Status::moved, .bytes = static_cast<std::size_t>(result)};
  }
  if (result == 0) return {.status = Transfer::Status::closed};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.status = Transfer::Status::would_block};
  return {.status = Transfer::Status::closed, .bytes = 0, .error = errno};
}

template <class Function>
ssize_t retry_interrupted(Function call) {
  const NoCancellation whole;
  ssize_t result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg and recvmsg do not change it
  message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
  return message;
}

bool all_empty(std::span<const iovec> pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [](const iovec& piece) { return piece.iov_len == 0; });
}

}  // namespace

void apply(const SocketOptions& options, int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, options.no_delay ? 1 : 0);
  if (options.send_buffer_bytes > 0) set_option(socket, SOL_SOCKET, SO_SNDBUF, options.send_buffer_bytes);
  if (options.receive_buffer_bytes > 0) set_option(socket, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
  if (options.keepalive > Duration{}) {
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, whole_seconds_up(options.keepalive));
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, whole_seconds_up(options.keepalive));
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  }
  if (options.user_timeout > Duration{}) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(options.user_timeout).count();
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min<std::int64_t>(ms, INT_MAX)));
  }
  const std::string& congestion = options.congestion_control;
  if (!congestion.empty() && setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                                        static_cast<socklen_t>(congestion.size())) != 0) {
    throw InvalidArgument(
        fmt::format("congestion control '{}' cannot be used: {}; this machine offers those in "
                    "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
                    congestion, errno_text(errno)));
  }
}

Address local_address(int socket) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) {
    throw RendezvousError(fmt::format("cannot tell the address of a socket: {}", errno_text(errno)));
  }
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage), bytes);
}

std::size_t descriptors_for_unauthenticated() {
  constexpr std::size_t fewest = 4;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return fewest;
  return std::max<std::size_t>(fewest, static_cast<std::size_t>(limit.rlim_cur) / 8);
}

bool raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = std::min(limit.rlim_cur * 2, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

UniqueFd make_socket(int family) {
  for (;;) {
    UniqueFd made(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (made.get() >= 0) return made;
    const int error = errno;
    if (error == EMFILE && raise_descriptor_limit()) continue;
    throw RendezvousError(fmt::format("cannot make a TCP socket: {}", errno_text(error)));
  }
}

Listener::Listener(const Address& address, const Options& options)
    : socket_(make_socket(address.family())), reserve_(open_reserve()), accepted_options_(options.socket) {
  // Without it a restarted job could not take its port back from connections still in TIME_WAIT.
  set_option(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  // "::" means IPv6 only: listening on IPv4 as well would be more than the address says.
  if (address.family() == AF_INET6) set_option(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  // Buffer sizes must be set before listen to be used for the window negotiated on accept.
  apply(options.socket, socket_.get());
  if (bind(socket_.get(), address.data(), address.size()) != 0) {
    const int error = errno;
    const char* hint = error == EADDRINUSE      ? "; give port 0 to take a free one"
                       : error == EADDRNOTAVAIL ? "; this machine has no interface with that address"
                                                : "";
    throw RendezvousError(fmt::format("cannot listen on {}: {}{}", address.text(), errno_text(error), hint));
  }
  if (listen(socket_.get(), options.backlog) != 0) {
    throw RendezvousError(fmt::format("cannot listen on {}: {}", address.text(), errno_text(errno)));
  }
  address_ = local_address(socket_.get());
}

std::optional<Accepted> Listener::accept() {
  for (;;) {
    sockaddr_storage storage{};
    socklen_t bytes = sizeof storage;
    UniqueFd accepted(
        accept4(socket_.get(), reinterpret_cast<sockaddr*>(&storage), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.get() >= 0) {
      apply(accepted_options_, accepted.get());
      return Accepted{std::move(accepted), Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage), bytes)};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno == EMFILE && raise_descriptor_limit()) continue;
    const bool out_of_descriptors = errno == EMFILE || errno == ENFILE;
    const bool out_of_memory = errno == ENOBUFS || errno == ENOMEM;
    if (out_of_memory || (out_of_descriptors && !drop_one())) return std::nullopt;
    if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
      throw Error(fmt::format("listening on {} ended: {}", address_.text(), errno_text(errno)));
    }
    // What is left concerns one connection that died before it was accepted: go on with the next.
  }
}

bool Listener::drop_one() {
  reserve_.reset();
  const bool dropped = UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)).get() >= 0;
  reserve_ = open_reserve();
  if (dropped) ++dropped_;
  errno = 0;
  return dropped;
}

std::string Transfer::reason() const {
  if (tls != nullptr) return fmt::format("TLS: {}; bytes were changed or cut off on the way", tls);
  return error == 0 ? "closed by the other side" : errno_text(error);
}

Transfer read_some(int socket, std::span<std::byte> into) {
  if (into.empty()) return {.status = Transfer::Status::moved};
  return outcome(retry_interrupted([&] { return recv(socket, into.data(), into.size(), 0); }), true);
}

Transfer read_some(int socket, std::span<const iovec> into) {
  if (all_empty(into)) return {.status = Transfer::Status::moved};
  msghdr message = message_of(into);
  return outcome(retry_interrupted([&] { return recvmsg(socket, &message, 0); }), true);
}

Transfer write_some(int socket, std::span<const std::byte> from) {
  return outcome(retry_interrupted([&] { return send(socket, from.data(), from.size(), MSG_NOSIGNAL); }), false);
}

Transfer write_some(int socket, std::span<const iovec> from) {
  const msghdr message = message_of(from);
  return outcome(retry_interrupted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL); }), false);
}

int poll_timeout_ms(TimePoint now, TimePoint deadline) {
  if (deadline == TimePoint::max()) return -1;
  if (deadline <= now) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::min<std::int64_t>(ms, INT_MAX));
}

short wait_for(int socket, short events, TimePoint deadline) {
  for (;;) {
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    const TimePoint now = std::chrono::steady_clock::now();
    const int ready = poll(&entry, 1, poll_timeout_ms(now, deadline));
    if (ready > 0) return (entry.revents & events) != 0 ? static_cast<short>(entry.revents & events) : events;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return 0;
    if (ready < 0 && errno != EINTR) throw Error(fmt::format("waiting for a socket failed: {}", errno_text(errno)));
  }
}

}  // namespace tutti::wire
