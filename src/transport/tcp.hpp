// tcp.hpp: the transport over TCP: non-blocking sockets, several streams per peer, credits, no copies of large messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "base/log.hpp"
#include "transport/stage.hpp"
#include "transport/tcp_connection_manager.hpp"
#include "transport/tcp_options.hpp"
#include "transport/tcp_peer.hpp"
#include "transport/tcp_receiver.hpp"
#include "transport/tcp_sender.hpp"
#include "wire/address.hpp"
#include "wire/secret.hpp"
#include "wire/socket.hpp"

namespace tutti::transport {

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

// Connections are made when they are first needed; the first broken one loses the peer.
class TcpTransport final : public Transport, private LinkOwner {
 public:
  // InvalidArgument if an option or the rank is out of range.
  explicit TcpTransport(TcpSetup setup);
  ~TcpTransport() override;  // without close(), the peers see a loss

  [[nodiscard]] std::string_view name() const override { return "tcp"; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(peers_.size()); }
  void listen(TransportListener* listener) override;
  void send(Transfer& transfer) override;
  void recv(Transfer& transfer) override;
  // A receive that no message had reached yet leaves no trace; the bytes of one that was under way are thrown away. A
  // send whose receive was granted fails that receive.
  void cancel(Transfer& transfer) override;
  void give_back(Transfer& receive) override;
  // every_sequence (matching_queue.hpp) stands for a group that is gone.
  void forget(std::uint64_t group, std::uint64_t up_to_sequence) override;
  void post(int peer, std::span<const std::byte> message) override;
  void attach(int peer) override;
  bool poll() override;
  void wait(TimePoint until, Events events) override { connections_.wait(until, events); }
  void wake() override { connections_.wake(); }
  bool heard_from(int peer) override;
  [[nodiscard]] bool is_flushed() const override;
  void close(TimePoint deadline) override;
  void abandon() override { connections_.abandon(); }

  struct Statistics {
    std::int64_t held_bytes = 0;  // payload memory of messages that nobody has received yet
    std::int64_t held_bytes_peak = 0;
    std::size_t unexpected_count = 0;
    std::size_t link_count = 0;  // connections, those not proven yet included
    std::size_t half_open_count = 0;
    std::size_t turned_away_count = 0;  // unauthenticated connections that could not prove themselves
  };
  [[nodiscard]] Statistics statistics() const;

  // For a transport that serves some of the peers itself and leaves the others to this one (host.hpp). They share the
  // matching queue, because a receive from any_peer may take a message of either; a message belongs to whoever serves its sender.
  [[nodiscard]] MatchingQueue& matching_queue() { return receiver_.matching_queue(); }
  void use(UnexpectedMessage& unexpected, Transfer& receive) { receiver_.use(unexpected, receive); }
  void discard(UnexpectedMessage& unexpected) { receiver_.discard(unexpected); }
  void replace(const Transfer& receive, Transfer& by) { receiver_.replace(receive, by); }
  // Told of a peer that is lost or has said goodbye, before its transfers fail.
  using Departure = std::function<void(int peer, const std::string& reason)>;
  void on_departure(Departure departure) { departure_ = std::move(departure); }
  // Whether messages are under way. Receives that wait for one are the matching queue's to tell.
  [[nodiscard]] bool has_transfers() const;

 private:
  bool admit(Link& link) override;
  void link_opened(Link& link) override;
  bool refill(Link& link) override { return sender_.refill(peer_of(link), link); }
  void frame_written(Link&, OutgoingFrame& frame) override { sender_.frame_written(frame); }
  void frame_begins(Link& link, const wire::FrameHeader& header, std::span<const std::byte> extra) override;
  std::byte* payload_place(Link& link) override;
  void frame_ends(Link& link) override;

  Peer& checked_peer(int rank);
  Peer& peer_of(const Link& link) { return peers_[static_cast<std::size_t>(link.peer)]; }
  Link& control_of(Peer& peer);
  void control_begins(Link& link, std::uint64_t bytes);
  void goodbye(Link& link, const Numbers& numbers);
  void say_goodbye(Link& link);
  [[nodiscard]] bool is_unfinished(const Link& link) const;
  bool deliver_to_self();
  void settle_failures();
  void link_ended(Link& link, const std::string& reason);
  void part_if_unconnected(Peer& peer);
  void lose(Peer& peer, const Link& link, const std::string& reason);
  void disconnect(Peer& peer, Peer::Standing standing, std::string reason);
  template <class Unfinished>
  void work_until(TimePoint deadline, Unfinished unfinished);

  int rank_;
  std::uint64_t world_;
  TcpOptions options_;
  const Clock& clock_;
  TransportListener* listener_ = nullptr;
  Departure departure_;
  std::vector<Peer> peers_;
  ConnectionManager connections_;
  Sender sender_;
  Receiver receiver_;
  std::vector<Transfer*> self_sends_;
  std::vector<std::vector<std::byte>> self_controls_;
  bool closing_ = false, closed_ = false;
  bool says_goodbye_ = false;  // on every link, those that open from now on included
};

}  // namespace tutti::transport
