// peer.hpp: what the message protocol knows of another rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tutti/link.hpp>

#include "messages/frames.hpp"
#include "messages/stage.hpp"

namespace tutti::messages {

// A short answer to a frame of the peer.
struct Reply {
  FrameType type = FrameType::fin;
  Numbers numbers{};
};

struct Peer {
  int rank = -1;
  Link* link = nullptr;      // that carries the messages to and from it; none to this rank itself
  bool is_remote = false;    // the network carries them, and a wait() ends when they move
  bool is_attached = false;  // the network was asked to notice its end
  bool is_gone = false;
  bool is_given_up =
      false;  // lost, as the control network has found, though its links may still be open: nobody waits until it reads
  bool was_told = false;  // the listener knows that it is lost
  std::string reason{};   // why it is gone, as an error of a transfer says it
  Link::Limits limits{};

  // Sending. What finds no room in the link waits here: replies, then fragments and messages in turn.
  std::int64_t credit_bytes = 0;  // what may still be sent eagerly
  Envelope last_sent{};           // of the last full head that is on its way for good, which a brief head refers to
  bool knows_last_sent = false;
  MessageShape told_shape{};           // the last one that was sent to it
  std::int64_t queued_full_count = 0;  // full heads that may still be withdrawn: until then, no brief one
  std::vector<Reply> replies{};
  std::vector<std::uint64_t> sending{};  // announced messages whose bytes go out in fragments, oldest first
  TransferList waiting{};
  TransferList in_link{};
  bool is_pending = false;  // listed as having something that waits

  // Receiving.
  Envelope last_received{};
  bool knows_last_received = false;
  MessageShape shape{};               // the last one that it has told
  std::int64_t unreturned_bytes = 0;  // credit that the peer has spent here
  std::int64_t used_up_bytes = 0;     // … of which this much can be given back

  [[nodiscard]] bool has_waiting() const { return !waiting.empty() || !replies.empty() || !sending.empty(); }
};

}  // namespace tutti::messages
