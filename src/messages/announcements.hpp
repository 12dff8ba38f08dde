// announcements.hpp: announced messages that no receive has asked for yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "messages/announced_receives.hpp"
#include "messages/handle_table.hpp"
#include "messages/matching_queue.hpp"
#include "messages/peer.hpp"
#include "messages/sender.hpp"

namespace tutti::messages {

// Each belongs to an entry of the matching queue, which holds its number; the entry lies there, or is reserved for a probe.
class Announcements {
 public:
  Announcements(MatchingQueue& queue, Sender& sender) : queue_(queue), sender_(sender) {}

  std::uint64_t add(const Announcement& announcement) { return all_.add(announcement); }
  Announcement take(std::uint64_t number);
  // The message that the queue had handed out lies there again, unless it was asked back meanwhile.
  void put_back(UnexpectedMessage& message, Peer& peer);
  // The sender has taken a message back.
  void cancelled(const Peer& peer, std::uint64_t message, const std::string& why);
  // The sender would like to have a message back: it gets it, if no receive and no probe has found it.
  void asked_back(Peer& peer, std::uint64_t message);
  // All of a peer that is gone.
  void fail_all(const Peer& peer);

 private:
  MatchingQueue& queue_;
  Sender& sender_;
  HandleTable<Announcement> all_;
};

}  // namespace tutti::messages
