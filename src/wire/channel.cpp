// channel.cpp: the handshake, then TLS, then bytes.
// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include <tutti/error.hpp>

namespace tutti::wire {

Channel::Channel(UniqueFd socket, const Handshake::Setup& setup)
    : socket_(std::move(socket)),
      role_(setup.role),
      encryption_(setup.encryption),
      handshake_(std::make_unique<Handshake>(setup)) {}

void Channel::fail(std::string why) {
  state_ = State::failed;
  error_ = std::move(why);
}

Transfer Channel::go_on_opening() {
  if (state_ != State::opening) return {.status = Transfer::Status::moved};
  if (handshake_) {
    const Transfer proven = prove();
    if (handshake_ || state_ == State::failed) return proven;
  }
  const Transfer shaken = tls_ ? tls_->shake_hands() : Transfer{.status = Transfer::Status::moved};
  if (shaken.closed()) {
    was_tampered_with_ = shaken.tls != nullptr;
    fail(fmt::format("the connection ended in the handshake of TLS: {}", shaken.reason()));
  } else if (shaken.moved()) {
    state_ = State::open;
  }
  return shaken;
}

// Moved: the handshake is over, well or not.
Transfer Channel::prove() {
  std::array<std::byte, 256> buffer;
  for (;;) {
    const bool writes = !handshake_->output().empty();
    if (!writes && handshake_->state() != Handshake::State::running) break;
    const Transfer moved =
        writes ? write_some(fd(), handshake_->output())
               : read_some(fd(), std::span(buffer).first(std::min(handshake_->wanted(), buffer.size())));
    if (moved.closed()) {
      give_up_opening(moved.error == 0 ? "closed the connection" : "reset the connection");
      return moved;
    }
    if (!moved.moved()) return moved;
    writes ? handshake_->sent(moved.bytes) : void(handshake_->feed(std::span(buffer).first(moved.bytes)));
  }
  if (handshake_->state() == Handshake::State::failed) {
    fail(handshake_->error());
    return {.status = Transfer::Status::moved};
  }
  peer_purpose_ = handshake_->peer_purpose();
  if (encryption_ == Encryption::tls) {
    auto key = handshake_->channel_key();
    tls_ = std::make_unique<TlsSession>(
        fd(), role_ == Handshake::Role::initiator ? TlsSession::Role::client : TlsSession::Role::server, key);
    OPENSSL_cleanse(key.data(), key.size());
  }
  handshake_.reset();
  return {.status = Transfer::Status::moved};
}

void Channel::give_up_opening(std::string_view how) {
  if (state_ != State::opening) return;
  if (!handshake_) return fail(fmt::format("it {} in the handshake of TLS", how));
  handshake_->closed(how);
  fail(handshake_->error());
}

Transfer Channel::read(std::span<std::byte> into) {
  if (!tls_) return read_some(fd(), into);
  const iovec piece{.iov_base = into.data(), .iov_len = into.size()};
  return tls_->read(std::span(&piece, 1));
}

Transfer Channel::write(std::span<const std::byte> from) {
  if (!tls_) return write_some(fd(), from);
  const iovec piece{.iov_base = const_cast<std::byte*>(from.data()), .iov_len = from.size()};
  return tls_->write(std::span(&piece, 1));
}

bool Channel::has_unsent() const {
  return (handshake_ && !handshake_->output().empty()) || (tls_ && tls_->has_unsent());
}

void Channel::close() {
  tls_.reset();
  socket_.reset();
}

void open_channel(Channel& channel, std::string_view peer_name, TimePoint deadline) {
  while (channel.state() == Channel::State::opening) {
    if (channel.go_on_opening().status != Transfer::Status::would_block) continue;
    if (wait_for(channel.fd(), channel.has_unsent() ? POLLOUT : POLLIN, deadline) == 0)
      channel.give_up_opening("did not answer in time");
  }
  if (channel.state() == Channel::State::failed)
    throw AuthenticationError(fmt::format("{} cannot be authenticated: {}", peer_name, channel.error()));
}

}  // namespace tutti::wire
