// receiver.hpp: the receiving half of the message protocol: matching, asking for bytes, and where they go.
// SPDX-License-Identifier: Apache-2.0
//
// Links are always read to their end: a message that nobody asked for yet goes into the matching queue, bounded by the sender's
// credit, and one that is only announced stays with its sender. So no frame ever waits behind another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tutti/link.hpp>

#include "messages/announced_receives.hpp"
#include "messages/announcements.hpp"
#include "messages/handle_table.hpp"
#include "messages/matching_queue.hpp"
#include "messages/peer.hpp"
#include "messages/self_messages.hpp"
#include "messages/sender.hpp"
#include "messages/takes.hpp"

namespace tutti::messages {

class Receiver final : private WithdrawnMessages {
 public:
  struct Setup {
    int rank;
    Network& network;
    Sender& sender;
    SelfMessages& self;
    MatchingQueue& queue;
    std::vector<Peer>& peers;
  };
  explicit Receiver(const Setup& setup)
      : setup_(setup),
        announced_({.rank = setup.rank,
                    .network = setup.network,
                    .sender = setup.sender,
                    .peers = setup.peers,
                    .user = *this}),
        announcements_(setup.queue, setup.sender) {}
  void listen(TransportListener* listener) { listener_ = listener; }
  // From now on. Messages that a receive has found come nevertheless. Of a rank that takes nothing the listener hears nothing.
  void take_only(Takes what) { takes_ = what; }

  void recv(Transfer& receive);
  // The next thing that the peer says, if it is what this receive waits for, and nothing else is awaited from any rank: then it need
  // not be matched.
  bool try_recv(Peer& peer, Transfer& transfer, int spins);
  void cancel(Transfer& transfer);
  // A receive that has found its message is given up, and its message is not lost.
  void give_back(const Transfer& transfer);
  // An unexpected message that the matching queue has handed out, and that no receive wants.
  void discard(UnexpectedMessage& message);
  // … that this receive has found, which was posted for `asked`. False if it is not there any more; then the receive is as the matching
  // queue left it.
  [[nodiscard]] bool use(UnexpectedMessage& message, Transfer& receive, int asked);
  // … that is for others again: for the receives that wait, or for later ones.
  void offer_again(UnexpectedMessage& message);
  // All receives that only a peer that is gone could have served, and what it had only announced.
  void fail_all(Peer& peer);
  [[nodiscard]] AnnouncedReceives& announced() { return announced_; }

  // What a link hears; see LinkListener.
  void frame(Peer& peer, const Frame& frame);
  std::uint64_t frame_begins(Peer& peer, const Frame& frame, std::int64_t payload_bytes);
  std::byte* landing(std::uint64_t number);
  void frame_ends(std::uint64_t number);

  // Messages under way over the network.
  [[nodiscard]] std::int64_t remote_count() const { return remote_count_ + announced_.remote_count(); }
  // Receives in the matching queue that wait for a local peer by its rank.
  [[nodiscard]] std::int64_t local_posted_count() const { return local_posted_count_; }
  [[nodiscard]] std::int64_t held_bytes_peak() const { return held_bytes_peak_; }

 private:
  // A frame whose payload is coming in.
  struct Landing {
    enum class Kind : std::uint8_t { discard, receive, unexpected, fragment };
    Stage stage = Stage::landing;
    Kind kind = Kind::discard;
    bool costs_credit = false;  // it is a whole message
    bool forgotten = false;     // Kind::unexpected: the message is no longer wanted
    int peer = -1;
    Transfer* receive = nullptr;           // Kind::receive
    UnexpectedMessage* message = nullptr;  // Kind::unexpected
    Numbers fragment{};                    // Kind::fragment
    std::int64_t bytes = 0;
  };
  [[nodiscard]] Peer& peer_at(int rank) { return setup_.peers[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Envelope& eager_envelope(Peer& peer, const Frame& frame, std::int64_t payload_bytes);
  void spend_credit(Peer& peer, const Envelope& envelope);
  void return_credit(Peer& peer, std::int64_t bytes);
  [[nodiscard]] bool is_wanted(const Peer& peer, const Envelope& envelope);
  [[nodiscard]] MatchingQueue::Match match(const Peer& peer, const Envelope& envelope, const MessageShape& shape);
  void eager(Peer& peer, const Envelope& envelope, std::span<const std::byte> payload);
  void rts(Peer& peer, const Frame& frame);
  void post(Transfer& receive, MatchingQueue::Place place);
  void withdrawn(Transfer& receive, int asked) override;
  void count(const Peer& peer, std::int64_t change) { remote_count_ += peer.is_remote ? change : 0; }
  void count_posted(const Peer& peer, std::int64_t change) { local_posted_count_ += peer.is_remote ? 0 : change; }

  Setup setup_;
  TransportListener* listener_ = nullptr;
  HandleTable<Landing> landings_;
  AnnouncedReceives announced_;
  Announcements announcements_;
  std::int64_t remote_count_ = 0;
  std::int64_t local_posted_count_ = 0;
  std::int64_t held_bytes_peak_ = 0;
  Takes takes_ = Takes::everything;
};

}  // namespace tutti::messages
