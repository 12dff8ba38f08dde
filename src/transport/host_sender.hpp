// host_sender.hpp: the sending half of the host transport: messages through the ring, and offers of those too large for it.
// SPDX-License-Identifier: Apache-2.0
//
// An offered message stays where it is; the receiver fetches it and says `done`. Each offer has a remote key, a word in this
// rank's arena that holds the message's number as long as its memory may be read:
//
//  1. Whoever takes memory back (cancel, close) clears the remote key before it touches the memory.
//  2. The receiver delivers a message only if, after its last byte was copied, the remote key still holds the number.
//
// So a copy that overlapped with the end of the memory is never taken for the message, and nobody waits for anybody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

#include "shm/arena.hpp"
#include "transport/handle_table.hpp"
#include "transport/host_peer.hpp"
#include "transport/host_records.hpp"

namespace tutti::transport::host {

class Sender {
 public:
  struct Setup {
    int rank = -1;
    const HostOptions& options;
    shm::Arena& arena;
    std::function<void(int peer)> first_use;  // a ring to this peer was made
  };
  explicit Sender(Setup setup) : setup_(std::move(setup)) {}

  void send(Peer& peer, Transfer& transfer);
  void cancel(Peer& peer, Transfer& transfer);
  // A few words about a message of the peer's, as soon as there is room.
  void tell(Peer& peer, Notification notification);
  // What found no room before. True if anything moved.
  bool flush();
  // All sends to a peer that is gone.
  void fail_all(Peer& peer);
  // Takes the memory of all offers back; their receivers will find that they are gone.
  void withdraw_rts();
  [[nodiscard]] bool is_settled() const { return pending_.empty(); }

  // Notes from the receiver.
  void done(Peer& peer, std::uint64_t message);
  void cts_received(Peer& peer, std::uint64_t message);

 private:
  using RemoteKey = std::atomic<std::uint64_t>;
  struct Outbound {
    Transfer* transfer = nullptr;
    int peer = -1;
    std::int64_t passed_bytes = 0;  // of a granted one: what is in the ring already
  };

  void make_ring(Peer& peer);
  [[nodiscard]] bool has_ring(Peer& peer);
  [[nodiscard]] bool write(Peer& peer, Transfer& transfer);
  [[nodiscard]] bool write_eager(Peer& peer, Transfer& transfer);
  [[nodiscard]] bool write_first(Peer& peer, const Envelope& envelope, const std::byte* payload, std::size_t bytes);
  [[nodiscard]] bool write_rts(Peer& peer, Transfer& transfer);
  [[nodiscard]] bool write_notification(Peer& peer, Notification notification);
  [[nodiscard]] bool write_fragment(Peer& peer);
  [[nodiscard]] bool flush(Peer& peer);
  [[nodiscard]] bool has_credit(Peer& peer, std::int64_t cost);
  void rest_not(Peer& peer);
  void enqueue(Peer& peer, Transfer& transfer);
  void dequeue(Peer& peer, Transfer& transfer);
  void make_remote_keys();
  [[nodiscard]] RemoteKey& remote_key_of(std::uint64_t number);
  [[nodiscard]] Outbound* find(const Peer& peer, std::uint64_t number);
  void forget(std::uint64_t number);

  Setup setup_;
  HandleTable<Outbound> outbound_;
  std::vector<RemoteKey*> remote_key_pages_;  // by slot of the number
  std::vector<Peer*> pending_;                // those for whom something waits
};

}  // namespace tutti::transport::host
