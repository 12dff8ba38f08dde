// announced_receives.hpp: receives whose message was announced: its bytes are read from the sender's memory, or come in fragments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tutti/link.hpp>

#include "messages/handle_table.hpp"
#include "messages/peer.hpp"
#include "messages/sender.hpp"

namespace tutti::messages {

// What an rts says.
struct Announcement {
  int peer = -1;
  std::uint64_t message = 0;  // the sender's number
  RemoteKey key{};
  bool is_asked_back = false;  // while a probe had found it
};

// The fragments of messages of this length and more go to their places past the caches: a place would be read from memory before it is
// written. Two ranks with an array to send and one to receive fill the cache that they share, if each array has a quarter of it.
std::int64_t streamed_bytes_min();

// Instead of the peer that a receive was posted for: this message, and no other one.
inline constexpr int this_message = -2;

// A message that its sender has withdrawn was never sent: the receive that had matched it waits for another one. `asked` is the peer
// that the receive was posted for, not this_message.
class WithdrawnMessages {
 public:
  virtual void withdrawn(Transfer& receive, int asked) = 0;

 protected:
  ~WithdrawnMessages() = default;
};

class AnnouncedReceives {
 public:
  struct Setup {
    int rank;
    Network& network;
    Sender& sender;
    std::vector<Peer>& peers;
    WithdrawnMessages& user;
  };
  explicit AnnouncedReceives(const Setup& setup) : setup_(setup) {}

  // False if the message is not there any more. `asked`: the peer that the receive was posted for, or this_message.
  [[nodiscard]] bool begin(Peer& peer, Transfer& receive, const Announcement& announcement, int asked);
  void cancel(Transfer& receive);
  // The bytes that are still to come go to `rest`.
  void redirect(const Transfer& receive, Transfer& rest);
  // The sender has withdrawn the message.
  void cancelled(Peer& peer, std::uint64_t message);
  void fail_all(Peer& peer);
  // Reads a bounded part of what is read from the senders' memory. True if anything moved.
  bool get();
  [[nodiscard]] bool is_getting() const { return !getting_.empty(); }

  // A fragment of so many bytes for receive `numbers.first` at `numbers.second`: false if that receive is over. MalformedMessage if
  // the fragment does not fit.
  [[nodiscard]] bool expects(const Peer& peer, const Numbers& numbers, std::int64_t bytes);
  // Where it belongs; nullptr if the receive is over by now.
  [[nodiscard]] std::byte* place_of(const Numbers& numbers);
  // Copies it there.
  void put(const Numbers& numbers, std::span<const std::byte> payload);
  void fragment_came(std::uint64_t number, std::int64_t bytes);

  // Receives under way over the network.
  [[nodiscard]] std::int64_t remote_count() const { return remote_count_; }
  [[nodiscard]] std::string taken_back(int peer) const;

 private:
  struct Inbound {
    enum class Way : std::uint8_t { get, fragments, stalled };
    Stage stage = Stage::inbound;
    Way way = Way::fragments;
    Transfer* receive = nullptr;
    std::uint64_t number = 0;
    std::uint64_t message = 0;  // the sender's number
    int asked = any_peer;
    std::int64_t missing_bytes = 0;  // Way::fragments
    RemoteGet get{};                 // its peer and size hold for every way
  };

  [[nodiscard]] Peer& peer_of(const Inbound& inbound) {
    return setup_.peers[static_cast<std::size_t>(inbound.get.peer)];
  }
  void ask_for_fragments(Inbound& inbound);
  [[nodiscard]] bool step(Inbound& inbound, std::int64_t bytes_max, std::int64_t& moved_bytes);
  void withdrawn(Inbound& inbound);
  void remove(Inbound& inbound);

  Setup setup_;
  HandleTable<Inbound> inbound_;
  std::vector<std::uint64_t> getting_;  // numbers, oldest first
  std::int64_t remote_count_ = 0;
};

}  // namespace tutti::messages
