// messages.hpp: messages between ranks over any links: the one implementation of Transport.
// SPDX-License-Identifier: Apache-2.0
//
// Matching, eager messages and rendezvous, credits and cancelling are here, once (sender.hpp, receiver.hpp, matching_queue.hpp); a
// link moves frames (link.hpp). The network reaches all ranks, carries control messages and notices which ranks end. Links beside it
// carry the messages of some peers faster: rings in shared memory those of this host.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/link.hpp>
#include <tutti/transport.hpp>

#include "messages/matching_queue.hpp"
#include "messages/peer.hpp"
#include "messages/receiver.hpp"
#include "messages/self_messages.hpp"
#include "messages/sender.hpp"

namespace tutti::messages {

struct MessagesSetup {
  int rank = 0;
  int size = 1;
  const Clock& clock;
  std::unique_ptr<Network> network{};
  // Carries the messages of the peers in `local`, by rank. Two ranks must agree about each other.
  std::unique_ptr<Link> local_link{};
  std::vector<bool> local{};
};

// Thread rule: as every transport. What local peers do is found by poll() alone; a rank that sleeps does so on the doorbell of its
// arena (shm/doorbell.hpp), which is notified of everything that poll() would find there, and in wait() for the rest.
class Messages final : public Transport, private LinkListener {
 public:
  // InvalidArgument if the rank is out of range.
  explicit Messages(MessagesSetup setup);
  ~Messages() override;  // without close(), the peers see a loss

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view link_name(int peer) const override;
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void listen(TransportListener* listener) override;
  void send(Transfer& transfer) override;
  void recv(Transfer& transfer) override;
  bool try_recv(Transfer& transfer, int spins) override;
  // A receive that no message had reached yet leaves no trace; the bytes of one that was under way are thrown away. A send whose
  // receive is under way fails that receive.
  void cancel(Transfer& transfer) override;
  bool withdraw(Transfer& transfer) override;
  void give_back(Transfer& receive) override;
  bool reserve(Transfer& probe) override;
  void accept(Transfer& probe, Transfer& receive) override;
  void release(Transfer& probe) override;
  // every_sequence (matching_queue.hpp) stands for a group that is gone.
  void forget(std::uint64_t group, std::uint64_t up_to_sequence) override;
  void refuse_messages() override;
  void post(int peer, std::span<const std::byte> message) override;
  void attach(int peer) override;
  bool poll() override;
  void wait(TimePoint until, Events events) override;
  void wake() override { network_->wake(); }
  [[nodiscard]] bool busy_outside() const override;
  [[nodiscard]] bool must_be_polled() const override { return local_link_ && local_link_->must_be_polled(); }
  bool heard_from(int peer) override { return network_->heard_from(peer); }
  [[nodiscard]] bool is_flushed() const override;
  void give_up(int peer) override;
  void close(TimePoint deadline) override;
  void abandon() override;

  // Payload memory of messages that no receive has asked for yet, now and at most so far.
  [[nodiscard]] std::int64_t held_bytes() const { return queue_.held_bytes(); }
  [[nodiscard]] std::int64_t held_bytes_peak() const { return receiver_.held_bytes_peak(); }
  [[nodiscard]] std::size_t unexpected_count() const { return queue_.unexpected_count(); }
  [[nodiscard]] std::vector<Unreceived> unreceived(std::uint64_t group, std::uint32_t epoch) const override {
    return queue_.unreceived(group, epoch);
  }

 private:
  void discard_all(UnexpectedMessage* chain);
  // Those that a probe has found: of this group, or all.
  void discard_reserved(std::optional<std::uint64_t> group, std::string_view why);
  void frame(int peer, const Frame& frame) override { receiver_.frame(peers_[static_cast<std::size_t>(peer)], frame); }
  std::uint64_t frame_begins(int peer, const Frame& frame, std::int64_t payload_bytes) override {
    return receiver_.frame_begins(peers_[static_cast<std::size_t>(peer)], frame, payload_bytes);
  }
  std::byte* landing(std::uint64_t number) override { return receiver_.landing(number); }
  void frame_ends(std::uint64_t number) override { receiver_.frame_ends(number); }
  void sent(void* owner, std::int64_t payload_bytes) override;
  void control(int peer, std::span<const std::byte> message) override;
  void lost(int peer, std::string_view reason) override;
  void unreachable(int peer, std::string_view reason) override;
  void parted(int peer) override;

  Peer& checked_peer(int rank) {
    if (rank < 0 || rank >= size_) [[unlikely]]
      reject_rank(rank);
    return peers_[static_cast<std::size_t>(rank)];
  }
  [[noreturn]] void reject_rank(int rank) const;
  void poll_network_soon() { poll_network_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_network_due();
  bool poll_network();
  void disconnect(Peer& peer, std::string reason);
  void disconnect_lost(Peer& peer, std::string_view reason);

  int rank_;
  int size_;
  const Clock& clock_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Link> local_link_;
  std::string name_;
  TransportListener* listener_ = nullptr;
  std::vector<Peer> peers_;
  int remote_peer_count_ = 0;
  MatchingQueue queue_;
  SelfMessages self_;
  Sender sender_;
  Receiver receiver_;
  std::atomic<bool> poll_network_{true};  // it may have something to do
  std::atomic<bool> has_self_work_{false};
  unsigned polls_ = 0;
  bool network_is_busy_ = false;
  TimePoint network_polled_at_{};
  bool closing_ = false, closed_ = false;
};

}  // namespace tutti::messages
