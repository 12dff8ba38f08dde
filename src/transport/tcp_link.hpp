// tcp_link.hpp: one connection to another rank, from connect or accept to its end.
// SPDX-License-Identifier: Apache-2.0
//
// Every connection is opened by the rank that has something to send, and carries data one way only, so that there are no
// crossing connects; grants and credits come back on it. Only control links are used both ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "transport/matching_queue.hpp"
#include "transport/tcp_input.hpp"
#include "transport/tcp_output.hpp"
#include "wire/handshake.hpp"
#include "wire/socket.hpp"

namespace tutti::transport {

enum class LinkKind : std::uint8_t { control = 0, stream = 1 };

// What a connection is for. It travels in the handshake, authenticated.
struct LinkPurpose {
  std::uint64_t world = 0;  // tells apart the worlds of one job
  std::int32_t from = -1;
  std::int32_t to = -1;
  LinkKind kind = LinkKind::control;
  std::uint32_t stream = 0;  // 0: heads and small messages; from 1 on: the bytes of large ones

  [[nodiscard]] std::string encode() const;
  static std::optional<LinkPurpose> decode(std::string_view text);
  [[nodiscard]] std::string text() const;  // "control link", "stream 2"
};

// The payload that a link is in the middle of.
struct Incoming {
  enum class Kind : std::uint8_t { none, discard, receive, unexpected, data, control };
  Kind kind = Kind::none;
  Transfer* receive = nullptr;              // Kind::receive
  UnexpectedMessage* unexpected = nullptr;  // Kind::arrival
  bool forgotten = false;                   // Kind::arrival: nobody wants it any more
  std::int64_t cost = 0;                    // credit to give back when it is used up; discard and receive
  std::uint64_t cts = 0;                    // Kind::data
  std::int64_t offset = 0;                  // Kind::data
  std::int64_t bytes = 0;
};

struct Link {
  enum class State : std::uint8_t { connecting, handshaking, open, closed };

  LinkPurpose purpose;
  bool mine = false;      // opened by this rank
  wire::Address address;  // of the other side
  int peer = any_peer;    // known once the handshake is done, for one that came in
  State state = State::connecting;
  std::optional<wire::Connecting> connecting;
  std::unique_ptr<wire::Handshake> handshake;
  UniqueFd socket;
  int attempts = 0;      // to connect
  TimePoint deadline{};  // for unauthenticated connections to prove themselves
  Output output;
  std::optional<Input> input;  // once open
  Incoming incoming;
  std::vector<std::byte> control;  // a control message coming in
  std::string write_error;         // why it cannot be written any more, while it may still be read
  bool parted = false;             // the other side said goodbye
  bool readable = false, writable = false, hung_up = false;  // what epoll said last
  bool ready = false;                                        // is in the list of links to look at
  bool attached = false;                                     // a peer points at it

  [[nodiscard]] bool is_open() const { return state == State::open; }
  // An unauthenticated connection counts as control until it is known what it came for.
  [[nodiscard]] bool is_data() const { return purpose.kind == LinkKind::stream && (mine || state == State::open); }
  // Carries the bytes of large messages, in the direction of whoever opened it.
  [[nodiscard]] bool is_bulk() const { return purpose.kind == LinkKind::stream && purpose.stream > 0; }
};

}  // namespace tutti::transport
