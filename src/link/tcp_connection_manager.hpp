// tcp_connection_manager.hpp: all connections of one rank: opening, accepting, proving, reading and writing them without blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/link.hpp>

#include "base/log.hpp"
#include "link/tcp_connection.hpp"
#include "link/tcp_poller.hpp"
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

// The other machine's kernel has all that was written.
[[nodiscard]] bool is_acknowledged(const Connection& connection);

// Connections are edge-triggered: what epoll said is kept in the connection until a read or write finds nothing more to do. A connection
// that fails is reported by take_failures(), never from inside a call, and stays in place until sweep().
class ConnectionManager {
 public:
  struct Setup {
    wire::Listener listener;
    wire::Secret secret;
    wire::Encryption encryption = wire::Encryption::none;
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
  // For wait(), wake(), and to say that there is something to do that no socket tells.
  [[nodiscard]] TcpPoller& poller() { return poller_; }

  // Ends a connection. `reason` is reported once by take_failures(), unless it is empty.
  void fail(Connection& connection, std::string reason);
  struct Failure {
    Connection* connection;
    std::string reason;
  };
  std::vector<Failure> take_failures() { return std::exchange(failures_, {}); }
  // Frees the connections that ended and that no peer points at. After take_failures.
  void sweep();

  [[nodiscard]] const std::vector<std::unique_ptr<Connection>>& all() const { return all_; }
  // Connections that have yet to prove themselves, and those that could not.
  struct Counts {
    std::size_t half_open = 0, turned_away = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  void stop_listening();

 private:
  void find_ready();
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
  void handshake_done(Connection& connection);
  bool read(Connection& connection, const Input::Limits& limits);

  Setup setup_;
  ConnectionOwner& owner_;
  std::optional<wire::Listener> listener_socket_;
  TcpPoller poller_;
  std::vector<std::unique_ptr<Connection>> all_;
  std::vector<Connection*> ready_, working_;
  std::vector<Failure> failures_;
  bool may_accept_ = false;  // somebody may wait to be accepted
  bool any_closed_ = false;
  Counts counts_;
  bool told_of_drops_ = false;  // of connections, for want of descriptors
};

}  // namespace tutti::link
