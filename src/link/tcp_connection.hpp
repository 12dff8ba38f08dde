// tcp_connection.hpp: one connection to another rank, from connect or accept to its end.
// SPDX-License-Identifier: Apache-2.0
//
// Every connection is opened by the rank that has something to send, and carries data one way only, so that there are no
// crossing connects; replies come back on it. Only control connections are used both ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "link/tcp_input.hpp"
#include "link/tcp_output.hpp"
#include "wire/channel.hpp"

namespace tutti::link {

enum class ConnectionKind : std::uint8_t { control = 0, stream = 1 };

// What a connection is for. It travels in the handshake, authenticated.
struct ConnectionPurpose {
  std::uint64_t world = 0;  // tells apart the worlds of one job
  std::int32_t from = -1;
  std::int32_t to = -1;
  ConnectionKind kind = ConnectionKind::control;
  std::uint32_t stream = 0;  // 0: heads and small messages; from 1 on: the bytes of large ones

  [[nodiscard]] std::string encode() const;
  static std::optional<ConnectionPurpose> decode(std::string_view text);
  [[nodiscard]] std::string text() const;  // "control link", "stream 2"
};

struct Connection {
  enum class State : std::uint8_t { connecting, handshaking, open, closed };

  ConnectionPurpose purpose;
  bool mine = false;      // opened by this rank
  wire::Address address;  // of the other side
  int peer = -1;          // known once the handshake is done, for one that came in
  State state = State::connecting;
  std::optional<wire::Connecting> connecting;
  wire::Channel channel;
  int attempts = 0;      // to connect
  TimePoint since{};     // it was accepted, or the latest attempt was begun
  TimePoint deadline{};  // for unauthenticated connections to prove themselves
  Output output;
  std::optional<Input> input;  // once open
  enum class Payload : std::uint8_t { discarded, frame, control };
  Payload payload = Payload::discarded;  // that is coming in
  std::uint64_t landing = 0;             // Payload::frame: the listener's number
  std::vector<std::byte> control;        // Payload::control
  std::string write_error;               // why it cannot be written any more, while it may still be read
  bool parted = false;                   // the other side said goodbye
  bool readable = false, writable = false, hung_up = false;  // what epoll said last
  bool ready = false;                                        // is in the list of connections to look at
  bool attached = false;                                     // a peer points at it

  [[nodiscard]] bool is_open() const { return state == State::open; }
  [[nodiscard]] bool has_unsent() const { return !output.empty() || channel.has_unsent(); }
  // An unauthenticated one counts as control until it is known what it came for.
  [[nodiscard]] bool is_data() const {
    return purpose.kind == ConnectionKind::stream && (mine || state == State::open);
  }
  // Carries the bytes of large messages, away from the rank that opened it.
  [[nodiscard]] bool is_bulk() const { return purpose.kind == ConnectionKind::stream && purpose.stream > 0; }
};

}  // namespace tutti::link
