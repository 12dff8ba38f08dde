// tcp_receiver.hpp: the receiving half of the tcp transport: matching, granting, and where the bytes go.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tutti/transport.hpp>

#include "transport/handle_table.hpp"
#include "transport/matching_queue.hpp"
#include "transport/tcp_frames.hpp"
#include "transport/tcp_options.hpp"
#include "transport/tcp_peer.hpp"

namespace tutti::transport {

class Receiver {
 public:
  struct Setup {
    int rank;
    const TcpOptions& options;
    ConnectionManager& connections;
    std::vector<Peer>& peers;
  };
  explicit Receiver(const Setup& setup) : setup_(setup), matching_queue_(setup.rank) {}
  void listen(TransportListener* listener) { listener_ = listener; }

  void recv(Transfer& transfer);
  void cancel(Transfer& transfer);
  // Another receive gets the bytes of the message that this one has found.
  void replace(const Transfer& receive, Transfer& by);
  void forget(std::uint64_t group, std::uint64_t up_to_sequence);
  // All receives that only a peer that is gone could have served, and what it had only announced.
  void fail_all(Peer& peer);

  // Frames from the sender.
  void eager_begins(Link& link, const Message& message);
  void announced(Link& link, const Message& message);
  void data_begins(Link& link, const Numbers& numbers, std::int64_t payload_bytes);
  void aborted(const Peer& peer, const Numbers& numbers);
  [[nodiscard]] std::byte* payload_place(const Link& link);
  void payload_ends(Link& link);

  // A message of this rank to itself. True if it is used up; otherwise it waits, and its bytes are read on receipt.
  bool deliver_to_self(Transfer& send);
  void cancel_to_self(Transfer& send);

  // A receive found a message that had come in before it; or nobody wants the message.
  void use(UnexpectedMessage& unexpected, Transfer& receive);
  void discard(UnexpectedMessage& unexpected);

  [[nodiscard]] const MatchingQueue& matching_queue() const { return matching_queue_; }
  [[nodiscard]] MatchingQueue& matching_queue() { return matching_queue_; }
  [[nodiscard]] std::size_t inbound_count() const { return inbound_.count(); }
  [[nodiscard]] std::int64_t held_bytes_peak() const { return held_bytes_peak_; }

 private:
  // A receive whose bytes were granted and come in over any of the streams.
  struct Inbound {
    Transfer* receive = nullptr;
    int peer = -1;
    std::uint64_t message = 0;  // the sender's number
    std::int64_t missing_bytes = 0;
  };

  void cts(Transfer& receive, Peer& peer, std::uint64_t message);
  void tell_sender(Peer& peer, FrameType type, const Numbers& numbers);
  void give_credit_back(Peer& peer, std::int64_t cost);
  void take_from_self(UnexpectedMessage& unexpected, Transfer* receive);
  Link* link_reading(const Transfer& receive);
  [[nodiscard]] bool still_coming_in(const UnexpectedMessage& unexpected) const;

  Setup setup_;
  MatchingQueue matching_queue_;
  HandleTable<Inbound> inbound_;
  TransportListener* listener_ = nullptr;
  std::int64_t held_bytes_peak_ = 0;
};

}  // namespace tutti::transport
