// tcp_link.hpp: the network over TCP: non-blocking sockets, several streams per peer, no copies of payloads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/link.hpp>

#include "base/log.hpp"
#include "link/tcp_connection_manager.hpp"
#include "link/tcp_frames.hpp"
#include "link/tcp_options.hpp"
#include "link/tcp_peer.hpp"
#include "wire/address.hpp"
#include "wire/secret.hpp"
#include "wire/socket.hpp"

namespace tutti::link {

// A port before the table of all ports is known: bound to this address only; port 0 takes a free one.
wire::Listener open_listener(const wire::Address& address, const TcpOptions& options = {});

struct TcpSetup {
  int rank = 0;
  wire::Listener listener;
  std::vector<wire::Address> table;  // by rank; its size is the world's
  wire::Secret secret;
  const Clock& clock;
  std::uint64_t world = 0;  // a number that tells this world from others of the job
  TcpOptions options{};
  Log log{};
};

// Connections are made when they are first needed; the first broken one loses the peer. A peer has parted when it has said goodbye on
// every connection, and as many as its goodbye counts have come in.
class TcpLink final : public Network, private ConnectionOwner {
 public:
  // InvalidArgument if an option is out of range.
  explicit TcpLink(TcpSetup setup);
  ~TcpLink() override;

  [[nodiscard]] std::string_view name() const override { return "tcp"; }
  [[nodiscard]] Limits limits() const override;
  void listen(LinkListener* listener) override { listener_ = listener; }
  Taken send(int peer, FrameOrder order, const Frame& frame, void* owner) override;
  std::size_t withdraw(int peer, const void* owner) override;
  void prepare_bulk(int peer) override;
  bool poll() override;
  [[nodiscard]] bool is_flushed() const override;
  void abandon() override { ProcessFd::close_in_child(); }

  void post(int peer, std::span<const std::byte> message) override;
  void attach(int peer) override;
  bool heard_from(int peer) override;
  bool wait(TimePoint until, Transport::Events events) override;
  void wake() override { connections_.poller().wake(); }
  void give_up(int peer) override { peer_at(peer).is_given_up = true; }
  void close(TimePoint deadline) override;

  struct Statistics {
    std::size_t connection_count = 0;  // those not proven yet included
    std::size_t half_open_count = 0;
    std::size_t turned_away_count = 0;  // connections that could not prove themselves
  };
  [[nodiscard]] Statistics statistics() const;

 private:
  bool admit(Connection& connection) override;
  void connection_opened(Connection& connection) override;
  void frame_written(Connection& connection, OutgoingFrame& frame) override;
  void frame_begins(Connection& connection, const wire::FrameHeader& header, std::span<const std::byte> extra) override;
  std::byte* payload_place(Connection& connection) override;
  void frame_ends(Connection& connection) override;

  [[nodiscard]] TcpPeer& peer_at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  Connection& open(TcpPeer& peer, ConnectionKind kind, std::uint32_t stream);
  [[nodiscard]] Connection* connection_for(TcpPeer& peer, FrameOrder order);
  Connection& control_of(TcpPeer& peer);
  void control_begins(Connection& connection, std::uint64_t bytes);
  void goodbye(Connection& connection, std::uint64_t opened_connections);
  void say_goodbye(Connection& connection);
  [[nodiscard]] bool is_unfinished(const Connection& connection) const;
  [[nodiscard]] bool is_waited_for(const Connection& connection) const;
  void settle_failures();
  void connection_ended(Connection& connection, const std::string& reason);
  void part_if_done(TcpPeer& peer);
  void lose(TcpPeer& peer, const Connection& connection, const std::string& reason);
  void disconnect(TcpPeer& peer, TcpPeer::Standing standing);
  template <class Unfinished>
  void work_until(TimePoint deadline, Unfinished unfinished);

  int rank_;
  std::uint64_t world_;
  TcpOptions options_;
  const Clock& clock_;
  LinkListener* listener_ = nullptr;
  std::vector<TcpPeer> peers_;
  ConnectionManager connections_;
  bool closed_ = false;
  bool says_goodbye_ = false;  // on every connection, those that open from now on included
};

}  // namespace tutti::link
