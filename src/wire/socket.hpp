// socket.hpp: TCP sockets that never block: listen, accept, connect, read, write; IPv4 and IPv6 alike.
// SPDX-License-Identifier: Apache-2.0
//
// Every socket made here is non-blocking, closed on exec, and raises no SIGPIPE. Nothing here waits but `connect` and
// `wait_for`, which take a deadline.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <tutti/clock.hpp>

#include "base/process_fd.hpp"
#include "base/unique_fd.hpp"
#include "wire/address.hpp"

namespace tutti::wire {

struct SocketOptions {
  bool no_delay = true;
  std::string congestion_control = {};  // "cubic", "bbr", …; empty: the system's default
  int send_buffer_bytes = 0;            // 0: the kernel tunes it
  int receive_buffer_bytes = 0;
  Duration keepalive{};     // probe an idle peer this often, give it up after three lost probes; 0: never
  Duration user_timeout{};  // give up when sent bytes stay unacknowledged this long; 0: the system's default
};

// Throws InvalidArgument where the caller asked for something the kernel does not have (an unknown congestion control).
void apply(const SocketOptions& options, int socket);

Address local_address(int socket);

struct Accepted {
  UniqueFd socket;
  Address peer;
};

class Listener {
 public:
  struct Options {
    int backlog = 4096;  // the kernel cuts it to net.core.somaxconn
    SocketOptions socket{};
  };

  // Binds to exactly this address (all interfaces only if it is 0.0.0.0 or ::); port 0 takes a free one.
  // Throws RendezvousError that names the address.
  explicit Listener(const Address& address) : Listener(address, Options{}) {}
  Listener(const Address& address, const Options& options);

  // The next connection that waits, if one does. A connection that died in the queue is skipped. When the process is
  // out of descriptors the soft limit is raised towards the hard one; where that is not enough, the connection is
  // closed and `dropped` counts it, so that a level-triggered poll does not spin.
  std::optional<Accepted> accept();

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] const Address& address() const { return address_; }  // with the port in use
  [[nodiscard]] std::size_t dropped() const { return dropped_; }

 private:
  bool drop_one();

  ProcessFd socket_;
  UniqueFd reserve_;  // released to accept and close a connection when descriptors run out
  Address address_;
  SocketOptions accepted_options_;
  std::size_t dropped_ = 0;
};

// How many descriptors unauthenticated connections may hold: an eighth of what this process may have now, so that a
// program under a small limit keeps its own.
std::size_t descriptors_for_unauthenticated();

// Doubles the soft limit on descriptors, as far as the hard limit goes. Whether there was room.
bool raise_descriptor_limit();

// A TCP socket with nothing set but what the head of this file promises.
UniqueFd make_socket(int family);

// A connection being made, to be polled: wait until fd() is writable, then ask check().
class Connecting {
 public:
  enum class State { pending, connected, failed };

  explicit Connecting(const Address& peer, const SocketOptions& options = {});

  State check();
  [[nodiscard]] UniqueFd take() { return socket_.release(); }  // after State::connected
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] const Address& peer() const { return peer_; }
  [[nodiscard]] int error() const { return error_; }  // an errno, after State::failed

 private:
  void settle();

  ProcessFd socket_;
  Address peer_;
  State state_ = State::pending;
  int error_ = 0;
};

// One attempt, over by the deadline: the socket, or the errno it failed with.
std::pair<UniqueFd, int> connect_once(const Address& peer, TimePoint deadline, const SocketOptions& options = {});
// Connects by the deadline, trying again while nobody listens yet (ranks start in any order).
// Throws RendezvousError that names the address and the last cause.
UniqueFd connect(const Address& peer, TimePoint deadline, const SocketOptions& options = {});
// The same for a host with several addresses: each in turn, until one answers.
UniqueFd connect(std::span<const Address> peers, TimePoint deadline, const SocketOptions& options = {});

// What one read or write did. `closed` covers an orderly end and every error: the connection is of no more use.
struct Transfer {
  enum class Status { moved, would_block, closed };

  Status status = Status::would_block;
  std::size_t bytes = 0;  // moved
  int error = 0;          // an errno where it was not an orderly end
  const char* tls =
      nullptr;  // what was wrong, where the connection ended because what came over it was not what was sent

  [[nodiscard]] bool moved() const { return status == Status::moved; }
  [[nodiscard]] bool closed() const { return status == Status::closed; }
  [[nodiscard]] std::string reason() const;  // "closed by the other side", "Connection reset by peer"
};

// Zero bytes asked for counts as moved: an empty read must not look like the end of the connection.
Transfer read_some(int socket, std::span<std::byte> into);
Transfer read_some(int socket, std::span<const iovec> into);
Transfer write_some(int socket, std::span<const std::byte> from);
Transfer write_some(int socket, std::span<const iovec> from);

// poll(2) until one of `events` (POLLIN, POLLOUT) or the deadline; the events that came, 0 for the deadline. An error
// or hang-up on the socket counts as the event asked for: the next read or write reports it.
short wait_for(int socket, short events, TimePoint deadline);

// The milliseconds to give poll or epoll_wait so that it does not wake before the deadline; −1 for no deadline.
int poll_timeout_ms(TimePoint now, TimePoint deadline);

}  // namespace tutti::wire
