// channel.hpp: a connection whose two ends have proven to each other that they know the job's secret; encrypted where that is asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tutti/clock.hpp>

#include "base/process_fd.hpp"
#include "base/unique_fd.hpp"
#include "wire/handshake.hpp"
#include "wire/socket.hpp"
#include "wire/tls.hpp"

namespace tutti::wire {

// First the handshake, then TLS's own where both ask for it, then bytes both ways. Never blocks; a value that can be moved.
class Channel {
 public:
  enum class State : std::uint8_t { opening, open, failed };

  Channel() = default;
  Channel(UniqueFd socket, const Handshake::Setup& setup);

  // Goes on as far as the socket lets it. Closed: the connection has ended, or is of no use: error() says why.
  Transfer go_on_opening();
  [[nodiscard]] State state() const { return state_; }
  // After State::failed: who, what, why and what to check.
  [[nodiscard]] const std::string& error() const { return error_; }
  // The other side said nothing in time.
  void give_up_opening(std::string_view how);

  // Whether the other side greeted as a rank of some job does, in this or another version; noise and silence do not.
  [[nodiscard]] bool peer_spoke() const { return !handshake_ || handshake_->peer_spoke(); }
  [[nodiscard]] bool peer_sent_anything() const { return !handshake_ || handshake_->peer_sent_anything(); }
  // Whether the other side has proven that it knows the secret.
  [[nodiscard]] bool peer_is_proven() const { return !handshake_ || handshake_->peer_is_proven(); }
  // It has proven that, and hung up: this side was too late, or its process has ended.
  [[nodiscard]] bool was_too_late() const { return state_ == State::failed && peer_is_proven() && !was_tampered_with_; }
  // Once it is proven.
  [[nodiscard]] const std::string& peer_purpose() const { return peer_purpose_; }

  // Once open. As read_some of a socket: fewer bytes than asked for mean that there is nothing more to be had.
  Transfer read(std::span<const iovec> into) { return tls_ ? tls_->read(into) : read_some(socket_.get(), into); }
  Transfer read(std::span<std::byte> into);
  // As write_some of a socket. What is taken may wait here for the socket (has_unsent): a write without pieces sends it.
  Transfer write(std::span<const iovec> from) { return tls_ ? tls_->write(from) : write_some(socket_.get(), from); }
  Transfer write(std::span<const std::byte> from);
  // Bytes of the handshake or of TLS that wait for the socket.
  [[nodiscard]] bool has_unsent() const;
  // Bytes that a read gives although the socket has none.
  [[nodiscard]] bool holds_input() const { return tls_ && state_ == State::open && tls_->holds_input(); }

  [[nodiscard]] int fd() const { return socket_.get(); }
  void close();

 private:
  Transfer prove();
  void fail(std::string why);

  ProcessFd socket_;
  State state_ = State::opening;
  Handshake::Role role_ = Handshake::Role::initiator;
  Encryption encryption_ = Encryption::none;
  std::unique_ptr<Handshake> handshake_;  // until it is done
  std::unique_ptr<TlsSession> tls_;
  bool was_tampered_with_ = false;
  std::string peer_purpose_, error_;
};

// Opens a channel, by the deadline. Throws AuthenticationError; `peer_name` says in it who the other side was meant to be.
void open_channel(Channel& channel, std::string_view peer_name, TimePoint deadline);

}  // namespace tutti::wire
