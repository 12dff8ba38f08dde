// host_receiver.hpp: the receiving half of the host transport: matching, and where the bytes go.
// SPDX-License-Identifier: Apache-2.0
//
// Rings are always read to their end: a message that nobody asked for yet goes into the matching queue, bounded by the sender's
// credit, and what only announces itself stays with its sender. So nothing in a ring ever waits behind anything.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

#include "shm/local_peers.hpp"
#include "transport/handle_table.hpp"
#include "transport/host_peer.hpp"
#include "transport/host_records.hpp"
#include "transport/host_sender.hpp"
#include "transport/matching_queue.hpp"

namespace tutti::transport::host {

class Receiver {
 public:
  struct Setup {
    int rank = -1;
    const HostOptions& options;
    const shm::LocalPeers& local_peers;
    MatchingQueue& matching_queue;  // also of the peers on other hosts
    Sender& sender;                 // notes go back through the ring to the peer
    std::vector<Peer>& peers;
    std::function<void(int peer)> suspect;  // see whether this peer still lives
  };
  explicit Receiver(Setup setup) : setup_(std::move(setup)) {}
  void listen(TransportListener* listener) { listener_ = listener; }

  enum class Use : std::uint8_t { taken, withdrawn };
  // A receive found a message of the peer. `withdrawn`: the message is not there any more, the receive is as it was
  // left by the matching queue and has to be posted again.
  [[nodiscard]] Use use(UnexpectedMessage& unexpected, Transfer& receive);
  void discard(UnexpectedMessage& unexpected);
  // A receive that was matched, and is not done yet.
  void cancel_taken(Peer& peer, Transfer& receive);
  // Another receive gets the bytes of the message that this one has found.
  void replace(Peer& peer, const Transfer& receive, Transfer& by);

  // Opens the peer's ring to this rank, if there is one by now. MalformedMessage if it cannot be one.
  bool discover(Peer& peer);
  // Reads what is in the peer's ring. Throws MalformedMessage.
  bool read(Peer& peer);
  // The next thing that the peer says, if it is what this receive waits for, and nothing else is awaited from anyone: then it need
  // not be looked up. Throws MalformedMessage.
  bool try_take(Peer& peer, Transfer& receive, int spins);
  // Fetches a bounded part of what was offered and matched.
  bool fetch();
  // Everything under way from a peer that is gone. Receives that were not matched are the matching queue's.
  void fail_all(Peer& peer);
  [[nodiscard]] bool is_fetching() const { return !inbound_.empty(); }
  // Receives in the matching queue that wait for a peer of this host by name.
  [[nodiscard]] std::int64_t posted_count() const { return posted_count_; }
  void count_posted(std::int64_t change) { posted_count_ += change; }

 private:
  enum class Way : std::uint8_t { load, cross_memory, fragments, stalled };
  // A receive whose message was offered.
  struct Inbound {
    Transfer* receive = nullptr;
    int peer = -1;
    Way way = Way::load;
    std::uint64_t message = 0;
    const std::byte* shared = nullptr;  // Way::load
    std::uint64_t address = 0;          // Way::cross_memory
    const std::atomic<std::uint64_t>* remote_key = nullptr;
    std::int64_t arrived_bytes = 0;
  };
  // A message that was offered and that nobody asked for yet. The matching queue's entry holds its number here.
  struct Waiting {
    int peer = -1;
    Rts rts{};
  };

  void take(Peer& peer, const Record& record);
  void message(Peer& peer, const Envelope& envelope, const std::byte* payload, std::int64_t bytes);
  [[nodiscard]] MatchingQueue::Match find_receive(const Peer& peer, const Envelope& envelope);
  [[nodiscard]] const std::byte* in_arena(const Peer& peer, std::uint64_t offset, std::uint64_t bytes) const;
  void place(Peer& peer, const Envelope& envelope, const MatchingQueue::Match& match);
  void more(Peer& peer, const std::byte* payload, std::int64_t bytes);
  void ended(Peer& peer);
  void rts_received(Peer& peer, const RtsBody& body);
  void fragment(Peer& peer, const Record& record);
  void cancelled(const Peer& peer, std::uint64_t message);
  [[nodiscard]] bool begin_fetch(Peer& peer, Transfer& receive, const Rts& rts);
  [[nodiscard]] const std::atomic<std::uint64_t>& remote_key_of(const Peer& peer, const Rts& rts) const;
  [[nodiscard]] std::int64_t fetch(Inbound& inbound, std::int64_t limit);
  std::int64_t fetch_failed(Inbound& inbound, int error);
  void settle(Inbound& inbound);
  [[nodiscard]] std::string taken_back(const Peer& peer) const;
  void tell_progress(Peer& peer);
  void give_credit_back(Peer& peer, std::int64_t cost);

  Setup setup_;
  TransportListener* listener_ = nullptr;
  HandleTable<Waiting> waiting_;
  std::vector<Inbound> inbound_;  // oldest first
  std::int64_t posted_count_ = 0;
};

}  // namespace tutti::transport::host
