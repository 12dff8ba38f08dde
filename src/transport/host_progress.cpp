// host_progress.cpp: how the host transport gets on, and what the end of a peer means.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "transport/host.hpp"

namespace tutti::transport {

namespace {

// The inner transport asks the system, which costs more than a message through shared memory does. While it has nothing
// under way but the control network, once in a while is enough; even the clock is looked at only now and then.
constexpr Duration inner_interval = std::chrono::microseconds(50);
constexpr unsigned polls_per_look_at_clock = 64;
// Rings that do not exist yet are looked for as often, unless there are so few that it does not matter.
constexpr unsigned polls_per_look = 16;
constexpr std::size_t few = 4;
constexpr int drain_rounds_max = 64;  // a peer that goes on sending while it goes is not listened to for ever

}  // namespace

bool HostTransport::poll() {
  bool moved = false;
  for (std::size_t i = 0; i < connected_.size();) {
    Peer& peer = *connected_[i];
    if (!peer.in.has_news()) [[likely]] {
      ++i;
      continue;
    }
    moved = true;
    if (read(peer)) ++i;  // otherwise it is in the list no more
  }
  ++polls_;
  // Whoever is about to sleep must not miss anything.
  const bool last_look = own_doorbell_->asleep.load(std::memory_order_relaxed) != 0;
  if (!unconnected_.empty() && (last_look || unconnected_.size() <= few || polls_ % polls_per_look == 0))
    look_for_rings();
  if (receiver_.is_fetching()) {
    moved |= receiver_.fetch();
    if (receiver_.is_fetching()) inner_is_busy_ = true;  // beside so much work it costs nothing
  }
  if (!sender_.is_settled()) moved |= sender_.flush();
  if (inner_is_busy_ || last_look || look_inside_.load(std::memory_order_relaxed) ||
      (polls_ % polls_per_look_at_clock == 0 && clock_.now() - inner_polled_at_ >= inner_interval)) {
    moved |= poll_inner();
  }
  return moved;
}

bool HostTransport::poll_inner() {
  look_inside_.store(false, std::memory_order_relaxed);
  const bool moved = inner_->poll();
  inner_is_busy_ = moved || busy_outside();
  inner_polled_at_ = clock_.now();
  return moved;
}

// What is found is read by the next poll.
void HostTransport::look_for_rings() {
  for (std::size_t i = 0; i < unconnected_.size();) {
    Peer& peer = *unconnected_[i];
    try {
      if (!receiver_.discover(peer)) {
        ++i;
        continue;
      }
    } catch (const MalformedMessage& error) {
      fail_peer(peer, error.what());
      continue;
    }
    unconnected_.erase(unconnected_.begin() + static_cast<std::ptrdiff_t>(i));
    connected_.push_back(&peer);
    read(peer);
  }
}

// False if the peer turned out to write nonsense and was let go.
bool HostTransport::read(Peer& peer) try {
  receiver_.read(peer);
  return true;
} catch (const MalformedMessage& error) {
  fail_peer(peer, error.what());
  return false;
}

void HostTransport::fail_peer(Peer& peer, const std::string& reason) {
  disconnect(peer, fmt::format("rank {}: lost rank {} ({}); see whether that rank crashed or overwrote its memory",
                               rank(), peer.rank, reason));
  if (!closing_) lost(peer.rank, reason);
}

// Once per peer, whoever notices first.
void HostTransport::lost(int peer, std::string_view reason) {
  if (std::exchange(is_lost_[static_cast<std::size_t>(peer)], char{1}) == 0) listener_->lost(peer, reason);
}

void HostTransport::unreachable(int peer, std::string_view reason) {
  if (std::exchange(is_lost_[static_cast<std::size_t>(peer)], char{1}) == 0) listener_->unreachable(peer, reason);
}

// The inner transport lost it, or it said goodbye there. What it wrote into its ring before that still counts.
void HostTransport::depart(int rank, const std::string& reason) {
  Peer* const peer = local_peer(rank);
  if (peer == nullptr || peer->is_gone) return;
  if (!closing_) {
    try {
      if (peer->in.exists() || receiver_.discover(*peer)) {
        for (int round = 0; round < drain_rounds_max && receiver_.read(*peer); ++round) {}
      }
    } catch (const MalformedMessage&) {  // it is gone anyway, and why is known
    }
  }
  disconnect(*peer, reason);
}

void HostTransport::disconnect(Peer& peer, const std::string& reason) {
  peer.is_gone = true;
  peer.reason = reason;
  sender_.fail_all(peer);
  receiver_.fail_all(peer);
  std::erase(connected_, &peer);
  std::erase(unconnected_, &peer);
}

// First what waits for room, for as long as the others read; then no offer stands any more; then the goodbyes.
void HostTransport::close(TimePoint deadline) {
  if (closing_) return;
  while (!sender_.is_settled() && clock_.now() < deadline) {
    if (!poll()) inner_->wait(std::min(deadline, clock_.now() + std::chrono::milliseconds(1)), Events::all);
  }
  closing_ = true;
  sender_.withdraw_rts();
  inner_->close(deadline);
}

}  // namespace tutti::transport
