// tcp_connection.cpp: bytes in, bytes out.
// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_connection.hpp"

#include <algorithm>
#include <array>

namespace tutti::store {

using wire::Channel;
using wire::Transfer;

TcpConnection::TcpConnection(UniqueFd socket, const wire::Secret& secret, wire::Encryption encryption)
    : channel_(
          std::move(socket),
          {.role = wire::Handshake::Role::acceptor, .secret = secret, .encryption = encryption, .purpose = "store"}) {}

TcpConnection::Outcome TcpConnection::receive(std::span<std::byte> buffer, std::vector<Request>& requests) {
  if (go_on_opening() == Outcome::finished) return Outcome::finished;
  constexpr int reads_max = 4;
  for (int reads = 0; reads < reads_max && channel_.state() == Channel::State::open; ++reads) {
    const Transfer moved = channel_.read(buffer);
    if (moved.closed()) return Outcome::finished;
    if (!moved.moved()) break;
    stream_.feed(buffer.first(moved.bytes), [&](Request&& request) { requests.push_back(std::move(request)); });
    if (moved.bytes < buffer.size()) break;
  }
  return Outcome::alive;
}

TcpConnection::Outcome TcpConnection::go_on_opening() {
  channel_.go_on_opening();
  return channel_.state() == Channel::State::failed ? Outcome::finished : Outcome::alive;
}

std::string TcpConnection::refusal() const {
  const bool refused = channel_.state() == Channel::State::failed && channel_.peer_spoke();
  return refused ? channel_.error() : "";
}

void TcpConnection::send(const Reply& reply) {
  output_.push_back({encode_head(reply), reply.value});
  output_bytes_ += output_.back().bytes();
}

TcpConnection::Outcome TcpConnection::flush() {
  if (go_on_opening() == Outcome::finished) return Outcome::finished;
  if (channel_.state() != Channel::State::open) return Outcome::alive;
  while (has_output()) {
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
    const Transfer moved = channel_.write(std::span<const iovec>(pieces.data(), count));
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
