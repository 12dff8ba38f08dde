// host_peer.hpp: what a rank knows of another one on its host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tutti/transport.hpp>

#include "transport/host_control_block.hpp"
#include "transport/host_ring.hpp"
#include "transport/matching_queue.hpp"

namespace tutti::transport::host {

// A message that passes through the ring in fragments, of which the first has come.
struct Current {
  enum class Kind : std::uint8_t { none, discard, receive, unexpected };
  Kind kind = Kind::none;
  Transfer* receive = nullptr;              // Kind::receive
  UnexpectedMessage* unexpected = nullptr;  // Kind::arrival
  bool forgotten = false;                   // Kind::arrival: nobody wants it any more
  std::int64_t bytes = 0;                   // of the message
  std::int64_t arrived_bytes = 0;
};

// Something short to tell the peer about a message: done, grant, revoke.
struct Notification {
  RecordKind kind = RecordKind::done;
  std::uint64_t message = 0;  // by the sender's number
};

struct Peer {
  int rank = -1;
  bool is_local = false;  // served through shared memory; of the others nothing below is used
  bool is_gone = false;
  std::string reason{};  // why, as an error of a transfer says it
  shm::ArenaHeader* doorbell = nullptr;
  Notice* ours = nullptr;  // on this rank's control block, for the peer
  const Notice* theirs = nullptr;

  // Sending. Whatever finds no room in the ring waits here: notes, then fragments and messages in turn.
  RingWriter out{};
  Envelope last_sent{};  // what a brief record is relative to
  std::int64_t spent_bytes = 0;
  std::uint64_t returned_bytes_seen = 0;
  std::vector<Notification> notifications{};
  std::vector<std::uint64_t> cts_received{};  // our messages that the peer asked for in fragments
  Transfer* first_waiting = nullptr;
  Transfer* last_waiting = nullptr;
  bool is_pending = false;  // listed as having something that waits

  // Receiving.
  RingReader in{};
  Envelope last_received{};
  Current current{};
  std::uint64_t read_lines_told = 0;
  std::int64_t unreturned_bytes = 0;  // credit that the peer has spent here
  std::int64_t used_up_bytes = 0;     // … of which this much can be given back
  std::uint64_t returned_bytes = 0;   // ever

  [[nodiscard]] bool has_waiting() const {
    return first_waiting != nullptr || !notifications.empty() || !cts_received.empty();
  }
};

}  // namespace tutti::transport::host
