// tcp_connection_manager.hpp: all connections of one rank: opening, accepting, proving, reading and writing them without blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/link.hpp>

#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "link/tcp_connection.hpp"
#include "wire/secret.hpp"

namespace tutti::link {

// Who owns what the connections carry.
class ConnectionOwner : public FrameSink {
 public:
  // A connection that came in has proved that it knows the secret. False hangs up on it.
  virtual bool admit(Connection& connection) = 0;
  virtual void connection_opened(Connection& connection) = 0;
  virtual void frame_written(Connection& connection, OutgoingFrame& frame) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// Connections are edge-triggered: what epoll said is kept in the connection until a read or write finds nothing more to do. A connection
// that fails is reported by take_failures(), never from inside a call, and stays in place until sweep().
class ConnectionManager {
 public:
  struct Setup {
    wire::Listener listener;
    wire::Secret secret;
    const Clock& clock;
    wire::SocketOptions socket;
    Duration handshake_timeout;
    std::size_t half_open_max;
    Log log{};
  };
  ConnectionManager(Setup setup, ConnectionOwner& owner);
  ~ConnectionManager();
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  // Starts to connect. The connection takes frames at once.
  Connection& open(const ConnectionPurpose& purpose, const wire::Address& address);
  // Queues a frame and writes what the socket takes.
  void push(Connection& connection, OutgoingFrame frame);
  // Writes what waits. True if anything moved.
  bool flush(Connection& connection);
  // Reads all there is, for a connection whose peer seems gone: its last words may be a goodbye.
  void drain(Connection& connection);

  // Works on the connections where something happened. True if anything moved.
  bool work();
  // Sleeps until there is work, wake() or `until`. From any thread, while another one works; takes nothing away from it.
  void wait(TimePoint until, Transport::Events events);
  // Ends a wait that is under way, or the next one: of each kind of events one.
  void wake();
  // There is something to do that no socket tells.
  void mark_work() { data_waits_ = control_waits_ = true; }

  // Ends a connection. `reason` is reported once by take_failures(), unless it is empty.
  void fail(Connection& connection, std::string reason);
  struct Failure {
    Connection* connection;
    std::string reason;
  };
  std::vector<Failure> take_failures() { return std::exchange(failures_, {}); }
  // The other machine's kernel has all that was written.
  [[nodiscard]] static bool is_acknowledged(const Connection& connection);
  // Frees the connections that ended and that no peer points at. After take_failures.
  void sweep();

  [[nodiscard]] const std::vector<std::unique_ptr<Connection>>& all() const { return all_; }
  [[nodiscard]] std::size_t half_open_count() const { return half_open_count_; }
  [[nodiscard]] std::size_t turned_away_count() const { return turned_away_count_; }  // unauthenticated connections
  void stop_listening();
  // In a forked child: closes every descriptor and leaves the parent's connections alone.
  void abandon();

 private:
  static constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

  void gather(const UniqueFd& epoll);
  void publish_work();
  void watch(Connection& connection, int fd);
  void unwatch(Connection& connection);
  void make_ready(Connection& connection);
  [[nodiscard]] bool is_full() const;
  void accept_pending();
  void expire_pending();
  void turn_away(Connection& connection);
  bool step(Connection& connection);
  bool connect_step(Connection& connection);
  bool handshake_step(Connection& connection);
  void retry_or_fail(Connection& connection, std::string reason);
  void start_connecting(Connection& connection);
  bool open_step(Connection& connection);
  void handshake_done(Connection& connection);
  bool read(Connection& connection, const Input::Limits& limits);

  Setup setup_;
  ConnectionOwner& owner_;
  std::optional<wire::Listener> listener_socket_;
  // The listening socket, unauthenticated connections and control connections are watched by an epoll of their own, which the other one watches: a look at
  // one sees everything, and a wait can be for control alone.
  UniqueFd epoll_, control_epoll_;
  UniqueFd wake_all_, wake_control_;
  std::vector<std::unique_ptr<Connection>> all_;
  std::vector<Connection*> ready_, working_;
  std::vector<Failure> failures_;
  bool may_accept_ = false;  // somebody may wait to be accepted
  bool any_closed_ = false;
  std::atomic<bool> data_waits_ = false, control_waits_ = false;  // what a wait must not sleep over
  std::atomic<std::int64_t> next_deadline_ns_ = no_deadline;      // of a unauthenticated connection
  std::size_t half_open_count_ = 0, turned_away_count_ = 0;
  bool told_of_drops_ = false;  // of connections, for want of descriptors
};

}  // namespace tutti::link
