// host.hpp: the transport inside a host: through shared memory to the ranks of this host, over tcp to all others.
// SPDX-License-Identifier: Apache-2.0
//
// Small messages pass through a ring per ordered pair (host_ring.hpp), large ones are copied once, by the receiver, straight
// from the sender's memory (host_sender.hpp says when such a copy counts). Control messages, goodbyes and losses are the
// inner transport's; whoever sends to a peer through shared memory is connected to it there, so that its end is noticed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/transport.hpp>

#include "shm/local_peers.hpp"
#include "transport/host_control_block.hpp"
#include "transport/host_peer.hpp"
#include "transport/host_receiver.hpp"
#include "transport/host_sender.hpp"
#include "transport/stage.hpp"
#include "transport/tcp.hpp"

namespace tutti::transport {

struct HostSetup {
  std::shared_ptr<shm::LocalPeers> local_peers{};
  std::unique_ptr<TcpTransport> inner{};
  // By rank: where its control block is (lay_out_board), or no_board for those to be reached over tcp. Two ranks must agree about
  // each other: both find each other's arena, or neither names the other's control block.
  std::vector<std::uint64_t> control_blocks{};
  const Clock& clock;
  HostOptions options{};
};

// Thread rule: as every transport. What the ranks of the host do is found by poll() alone; whoever sleeps, sleeps on the
// doorbell of this rank's arena (shm/doorbell.hpp), which rings for everything that poll() would find there, and in wait() for the
// rest.
class HostTransport final : public Transport, private TransportListener {
 public:
  // InvalidArgument if an option or a control block is out of range.
  explicit HostTransport(HostSetup setup);
  ~HostTransport() override;  // without close(), the peers see a loss

  [[nodiscard]] std::string_view name() const override { return remote_count_ == 0 ? "shm" : "shm+tcp"; }
  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  void listen(TransportListener* listener) override;
  void send(Transfer& transfer) override;
  void recv(Transfer& transfer) override;
  bool try_recv(Transfer& transfer, int spins) override;
  void cancel(Transfer& transfer) override;
  void give_back(Transfer& receive) override;
  void forget(std::uint64_t group, std::uint64_t up_to_sequence) override;
  void post(int peer, std::span<const std::byte> message) override;
  void attach(int peer) override;
  bool poll() override;
  // Sleeps on the inner transport: not for what happens in shared memory.
  void wait(TimePoint until, Events events) override;
  void wake() override { inner_->wake(); }
  bool heard_from(int peer) override { return inner_->heard_from(peer); }
  [[nodiscard]] bool is_flushed() const override { return sender_.is_settled() && inner_->is_flushed(); }
  void close(TimePoint deadline) override;
  void abandon() override;

  // Whether something under way needs the inner transport; receives from any_peer do, where there are other hosts.
  [[nodiscard]] bool busy_outside() const override;
  [[nodiscard]] bool is_local(int peer) const { return peers_[static_cast<std::size_t>(peer)].is_local; }
  [[nodiscard]] std::int64_t held_bytes() const { return matching_queue_.held_bytes(); }

 private:
  using Peer = host::Peer;

  // Of the inner transport.
  Verdict arrived(int peer, const Envelope& envelope) override { return listener_->arrived(peer, envelope); }
  void control(int peer, std::span<const std::byte> message) override { listener_->control(peer, message); }
  void lost(int peer, std::string_view reason) override;
  void unreachable(int peer, std::string_view reason) override;
  void parted(int peer) override { listener_->parted(peer); }

  [[nodiscard]] Peer* local_peer(int rank);
  void meet(Peer& peer, const HostSetup& setup);
  void discard(UnexpectedMessage& unexpected);
  bool poll_inner();
  void look_for_rings();
  bool read(Peer& peer);
  void depart(int rank, const std::string& reason);
  void disconnect(Peer& peer, const std::string& reason);
  void fail_peer(Peer& peer, const std::string& reason);

  HostOptions options_;
  const Clock& clock_;
  std::shared_ptr<shm::LocalPeers> local_peers_;
  std::unique_ptr<TcpTransport> inner_;
  MatchingQueue& matching_queue_;  // the inner transport's
  const shm::ArenaHeader* own_doorbell_;
  TransportListener* listener_ = nullptr;
  std::vector<Peer> peers_;
  host::Sender sender_;
  host::Receiver receiver_;
  int remote_count_ = 0;
  std::vector<Peer*> connected_;         // whose rings to this rank are open
  std::vector<Peer*> unconnected_;       // those on this host that have sent nothing yet
  std::vector<char> is_lost_;            // by rank: the listener was told
  std::atomic<bool> look_inside_{true};  // the inner transport may have something to do
  unsigned polls_ = 0;
  bool inner_is_busy_ = false;
  TimePoint inner_polled_at_{};
  bool closing_ = false;
  bool abandoned_ = false;
};

}  // namespace tutti::transport
