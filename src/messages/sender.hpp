// sender.hpp: the sending half of the message protocol: eager messages, announced ones, and their bytes in fragments.
// SPDX-License-Identifier: Apache-2.0
//
// An announced message stays in the caller's memory until its receiver has read it, or has asked for it and all fragments are
// written. Where the link can, the memory is exposed under a key that the announcement carries:
//
//  1. cancel() and close revoke the key before the memory is given back.
//  2. The receiver delivers a message only if, after its last byte was read, the key still held (Link, invariant 5).
//
// So a read that overlaps with the end of the memory is never taken for the message, and neither side waits for the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tutti/link.hpp>

#include "messages/handle_table.hpp"
#include "messages/peer.hpp"

namespace tutti::messages {

class Sender {
 public:
  Sender(int rank, Network& network) : rank_(rank), network_(network) {}

  void send(Peer& peer, Transfer& transfer);
  void cancel(Peer& peer, Transfer& transfer);
  // Takes a message back whose peer has seen nothing of it. False: its peer knows of it, and is asked to give it back; the transfer fails
  // when that happens (Transfer::Refusal::asked_back).
  [[nodiscard]] bool withdraw(Peer& peer, Transfer& transfer);
  // Answers the peer, as soon as there is room.
  void reply(Peer& peer, const Reply& reply);
  // A message that the peer has announced has come, or is not wanted.
  void reply_fin(Peer& peer, std::uint64_t message) {
    reply(peer, {.type = FrameType::fin, .numbers = {.first = message}});
  }
  // Sends what found no room before. True if anything moved.
  bool flush();
  // All sends to a peer that is gone.
  void fail_all(Peer& peer);
  // Takes the memory of all announced messages back; their receivers will find that they are gone.
  void revoke_all(std::vector<Peer>& peers);
  [[nodiscard]] bool is_settled() const { return std::ranges::all_of(pending_, &Peer::is_given_up); }
  // Sends under way over the network.
  [[nodiscard]] std::int64_t remote_count() const { return remote_count_; }

  // The link has written a frame of this transfer.
  void sent(Peer& peer, Transfer& transfer, std::int64_t payload_bytes);
  // Frames from the receiver.
  void cts(Peer& peer, const Numbers& numbers);
  void fin(Peer& peer, std::uint64_t message);
  // asked_back, receiver_left.
  void refused(Peer& peer, std::uint64_t message, Transfer::Refusal why);
  void credit(Peer& peer, std::uint64_t bytes);

 private:
  // An announced message.
  struct Outbound {
    Stage stage = Stage::announced;
    bool rts_sent = false;
    bool is_asked_back = false;
    int peer = -1;
    Transfer* transfer = nullptr;
    std::uint64_t number = 0;
    std::uint64_t receive = 0;      // the receiver's number, once it has asked
    std::int64_t next_offset = 0;   // what was cut into fragments so far
    std::int64_t unsent_bytes = 0;  // what may still be read from the caller's memory
    RemoteKey key{};
  };

  Link::Taken to_link(Peer& peer, FrameOrder order, const Frame& frame, void* owner) {
    if (!peer.is_attached) [[unlikely]]
      attach(peer);
    return peer.link->send(peer.rank, order, frame, owner);
  }
  void attach(Peer& peer);
  [[nodiscard]] bool start(Peer& peer, Transfer& transfer);
  [[nodiscard]] bool tell_shape(Peer& peer, const MessageShape& shape);
  [[nodiscard]] bool send_eager(Peer& peer, Transfer& transfer);
  [[nodiscard]] bool announce(Peer& peer, Transfer& transfer);
  [[nodiscard]] bool send_reply(Peer& peer, const Reply& reply);
  [[nodiscard]] bool send_fragment(Peer& peer);
  [[nodiscard]] bool flush(Peer& peer);
  [[nodiscard]] bool start_next(Peer& peer);
  void bytes_left(Peer& peer, Outbound& outbound, std::int64_t bytes);
  void list_pending(Peer& peer);
  void enqueue(Peer& peer, Transfer& transfer);
  [[nodiscard]] Outbound* find(const Peer& peer, std::uint64_t number);
  void remove(Peer& peer, Outbound& outbound);
  void count(const Peer& peer, std::int64_t change) { remote_count_ += peer.is_remote ? change : 0; }

  int rank_;
  Network& network_;
  HandleTable<Outbound> outbound_;
  std::vector<Peer*> pending_;  // those for whom something waits
  std::int64_t remote_count_ = 0;
};

}  // namespace tutti::messages
