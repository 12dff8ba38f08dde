// tcp_connection.cpp: bytes in, bytes out.
// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_connection.hpp"

#include <algorithm>
#include <array>

#include "wire/socket.hpp"

namespace tutti::store {

using wire::Handshake;
using wire::Transfer;

TcpConnection::TcpConnection(UniqueFd socket, const wire::Secret& secret)
    : socket_(std::move(socket)),
      handshake_(std::in_place,
                 Handshake::Setup{.role = Handshake::Role::acceptor, .secret = secret, .purpose = "store"}) {}

TcpConnection::Outcome TcpConnection::receive(std::span<std::byte> buffer, std::vector<Request>& requests) {
  if (handshake_ && shake_hands(buffer) == Outcome::finished) return Outcome::finished;
  constexpr int reads_max = 4;
  for (int reads = 0; reads < reads_max && !handshake_; ++reads) {
    const Transfer moved = wire::read_some(socket_.get(), buffer);
    if (moved.closed()) return Outcome::finished;
    if (!moved.moved()) break;
    stream_.feed(buffer.first(moved.bytes), [&](Request&& request) { requests.push_back(std::move(request)); });
    if (moved.bytes < buffer.size()) break;
  }
  return Outcome::alive;
}

TcpConnection::Outcome TcpConnection::shake_hands(std::span<std::byte> buffer) {
  while (handshake_->wanted() > 0) {
    const Transfer moved = wire::read_some(socket_.get(), buffer.first(std::min(buffer.size(), handshake_->wanted())));
    if (moved.closed()) handshake_->closed(moved.error == 0 ? "closed the connection" : "reset the connection");
    if (moved.closed()) return Outcome::finished;
    if (!moved.moved()) break;
    handshake_->feed(buffer.first(moved.bytes));
  }
  return flush_handshake();
}

std::string TcpConnection::refusal() const {
  const bool refused = handshake_ && handshake_->state() == Handshake::State::failed && handshake_->peer_spoke();
  return refused ? handshake_->error() : "";
}

TcpConnection::Outcome TcpConnection::flush_handshake() {
  while (!handshake_->output().empty()) {
    const Transfer moved = wire::write_some(socket_.get(), handshake_->output());
    if (moved.closed()) return Outcome::finished;
    if (!moved.moved()) break;
    handshake_->sent(moved.bytes);
  }
  if (handshake_->state() == Handshake::State::failed) return Outcome::finished;
  if (handshake_->state() == Handshake::State::done) handshake_.reset();
  return Outcome::alive;
}

void TcpConnection::send(const Reply& reply) {
  output_.push_back({encode_head(reply), reply.value});
  output_bytes_ += output_.back().bytes();
}

TcpConnection::Outcome TcpConnection::flush() {
  if (handshake_ && flush_handshake() == Outcome::finished) return Outcome::finished;
  return flush_replies();
}

TcpConnection::Outcome TcpConnection::flush_replies() {
  while (!output_.empty()) {
    std::array<iovec, 64> pieces;
    std::size_t count = 0;
    std::size_t skip = front_sent_;
    const auto add = [&](const void* data, std::size_t bytes) {
      const std::size_t skipped = std::min(skip, bytes);
      skip -= skipped;
      if (bytes > skipped)
        pieces[count++] = {const_cast<char*>(static_cast<const char*>(data)) + skipped, bytes - skipped};
    };
    for (const Outgoing& message : output_) {
      if (count + 2 > pieces.size()) break;
      add(message.head.bytes().data(), message.head.bytes().size());
      if (message.payload) add(message.payload->data(), message.payload->size());
    }
    const Transfer moved = wire::write_some(socket_.get(), std::span<const iovec>(pieces.data(), count));
    if (moved.closed()) return Outcome::finished;
    if (!moved.moved()) return Outcome::alive;
    drop_sent(moved.bytes);
  }
  return Outcome::alive;
}

void TcpConnection::drop_sent(std::size_t bytes) {
  front_sent_ += bytes;
  while (!output_.empty() && front_sent_ >= output_.front().bytes()) {
    front_sent_ -= output_.front().bytes();
    output_bytes_ -= output_.front().bytes();
    output_.pop_front();
  }
}

}  // namespace tutti::store
