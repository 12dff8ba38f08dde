// tcp_connection.hpp: one client of the tcp store, as its server sees it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "store/protocol.hpp"
#include "wire/channel.hpp"

namespace tutti::store {

// First a handshake, then requests in and replies out. Never blocks; every function that moves bytes says whether the
// connection is still of use.
class TcpConnection {
 public:
  enum class Outcome { alive, finished };

  TcpConnection(UniqueFd socket, const wire::Secret& secret, wire::Encryption encryption);

  // Reads what is there, at most `buffer` at a time and a few times, so that one client cannot keep the others waiting.
  // Requests are appended to `requests`. Throws MalformedMessage.
  Outcome receive(std::span<std::byte> buffer, std::vector<Request>& requests);
  // Queues a reply; flush() sends what the socket takes.
  void send(const Reply& reply);
  Outcome flush();

  [[nodiscard]] int fd() const { return channel_.fd(); }
  [[nodiscard]] bool is_unauthenticated() const { return !channel_.peer_is_proven(); }
  // Why a client that spoke our protocol failed to authenticate; empty for others, such as a port scan.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] bool has_output() const { return !output_.empty() || channel_.has_unsent(); }
  // A client that asks faster than it reads is not read from until it has caught up.
  [[nodiscard]] bool wants_input() const { return output_bytes_ < output_bytes_max; }
  // There is more to receive although the socket may have nothing.
  [[nodiscard]] bool holds_input() const { return channel_.holds_input(); }

 private:
  static constexpr std::size_t output_bytes_max = std::size_t{1} << 20;

  struct Outgoing {
    wire::EncodedFrame head;
    Value payload;
    [[nodiscard]] std::size_t bytes() const { return head.bytes().size() + (payload ? payload->size() : 0); }
  };

  Outcome go_on_opening();
  void drop_sent(std::size_t bytes);

  wire::Channel channel_;
  RequestStream stream_;
  std::deque<Outgoing> output_;
  std::size_t output_bytes_ = 0;
  std::size_t front_sent_ = 0;  // bytes of output_.front() that are sent
};

}  // namespace tutti::store
