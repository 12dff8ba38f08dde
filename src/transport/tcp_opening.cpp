// tcp_opening.cpp: how links come to be: connecting, accepting, and the handshake in between.
// SPDX-License-Identifier: Apache-2.0
//
// This rank waits without limit for the answer of a rank it connects to, which may be busy computing; calls have
// deadlines of their own. Unauthenticated connections at the door have a deadline, and there is a limit on how many.
#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "transport/tcp_connection_manager.hpp"
#include "transport/tcp_frames.hpp"

namespace tutti::transport {

namespace {

// A connection that ends within the handshake may have been turned away from a crowded door. Where the other rank is
// gone, connecting again fails at once.
constexpr int attempts_max = 4;
// The oldest unauthenticated connection makes room for a new one only after this time: ranks need much less.
constexpr Duration patience = std::chrono::seconds(1);

std::size_t lookahead_of(const Link& link) {
  return link.is_bulk() && !link.mine ? wire::frame_head_bytes + numbers_bytes : std::size_t{16} << 10;
}

}  // namespace

Link& ConnectionManager::open(const LinkPurpose& purpose, const wire::Address& address) {
  Link& link = *links_.emplace_back(std::make_unique<Link>());
  link.purpose = purpose;
  link.mine = true;
  link.peer = purpose.to;
  link.address = address;
  start_connecting(link);
  return link;
}

void ConnectionManager::start_connecting(Link& link) try {
  ++link.attempts;
  link.state = Link::State::connecting;
  link.readable = link.writable = link.hung_up = false;
  wire::SocketOptions options = setup_.socket;
  // Within one machine there is no path to probe, and the pacing of bbr costs a fifth of the bandwidth.
  if (options.congestion_control.empty() && link.address.is_loopback()) options.congestion_control = "reno";
  link.connecting.emplace(link.address, options);
  make_ready(link);
  if (link.connecting->fd() >= 0) watch(link, link.connecting->fd());
} catch (const Error& error) {
  fail(link, error.what());
}

bool ConnectionManager::connect_step(Link& link) {
  switch (link.connecting->check()) {
    case wire::Connecting::State::pending: return false;
    case wire::Connecting::State::failed:
      fail(link, "connecting failed: " + std::generic_category().message(link.connecting->error()));
      return true;
    case wire::Connecting::State::connected: break;
  }
  link.socket = link.connecting->take();
  link.connecting.reset();
  link.state = Link::State::handshaking;
  link.handshake = std::make_unique<wire::Handshake>(wire::Handshake::Setup{
      .role = wire::Handshake::Role::initiator, .secret = setup_.secret, .purpose = link.purpose.encode()});
  link.readable = link.writable = true;
  handshake_step(link);
  return true;
}

bool ConnectionManager::handshake_step(Link& link) {
  wire::Handshake& handshake = *link.handshake;
  std::array<std::byte, 256> buffer;
  bool moved = false;
  for (;;) {
    wire::Transfer step;
    if (!handshake.output().empty()) {
      step = wire::write_some(link.socket.get(), handshake.output());
      handshake.sent(step.bytes);
    } else if (handshake.state() == wire::Handshake::State::running) {
      step = wire::read_some(link.socket.get(), std::span(buffer).first(std::min(handshake.wanted(), buffer.size())));
      handshake.feed(std::span(buffer).first(step.bytes));
    } else {
      break;
    }
    if (step.closed()) {
      retry_or_fail(link, "the connection ended in the handshake: " + step.reason());
      return true;
    }
    if (!step.moved()) return moved;
    moved = true;
  }
  if (handshake.state() == wire::Handshake::State::failed) {
    link.mine ? fail(link, handshake.error()) : turn_away(link);
  } else {
    handshake_done(link);
  }
  return true;
}

void ConnectionManager::retry_or_fail(Link& link, std::string reason) {
  if (!link.mine) return turn_away(link);
  if (link.attempts >= attempts_max) return fail(link, std::move(reason));
  unwatch(link);
  link.handshake.reset();
  link.socket.reset();
  start_connecting(link);
}

void ConnectionManager::handshake_done(Link& link) {
  if (!link.mine) {
    const auto purpose = LinkPurpose::decode(link.handshake->peer_purpose());
    if (purpose) {
      link.purpose = *purpose;
      link.peer = purpose->from;
    }
    if (!purpose || !owner_.admit(link)) return turn_away(link);
    --half_open_count_;
    if (purpose->kind == LinkKind::stream) {
      unwatch(link);
      link.state = Link::State::open;
      watch(link, link.socket.get());
      if (!link.is_open()) return;
    }
  }
  link.handshake.reset();
  link.state = Link::State::open;
  link.input.emplace(lookahead_of(link));
  // The edge may have come during the handshake.
  link.readable = link.writable = true;
  make_ready(link);
  owner_.link_opened(link);
}

// An unauthenticated connection takes a descriptor that the program may need: only so many, as there are.
bool ConnectionManager::is_full() const {
  return half_open_count_ >= std::min(setup_.half_open_max, wire::descriptors_for_unauthenticated());
}

void ConnectionManager::accept_pending() {
  while (!is_full()) {
    std::optional<wire::Accepted> accepted = listener_socket_->accept();
    if (!accepted) {
      may_accept_ = false;
      if (listener_socket_->dropped() > 0 && !std::exchange(told_of_drops_, true))
        setup_.log.warn("a connection was turned away, perhaps of a rank: {}", wire::describe_system_error(EMFILE));
      return;
    }
    Link& link = *links_.emplace_back(std::make_unique<Link>());
    link.state = Link::State::handshaking;
    link.socket = std::move(accepted->socket);
    link.address = accepted->peer;
    link.deadline = deadline_after(setup_.clock.now(), setup_.handshake_timeout);
    link.handshake = std::make_unique<wire::Handshake>(
        wire::Handshake::Setup{.role = wire::Handshake::Role::acceptor, .secret = setup_.secret});
    ++half_open_count_;
    watch(link, link.socket.get());
    make_ready(link);
  }
}

// After their bytes were read, so that a rank that was busy itself does not blame others for it.
void ConnectionManager::expire_pending() {
  const TimePoint now = setup_.clock.now();
  const bool full = may_accept_ && is_full();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[i];
    if (link.mine || link.state != Link::State::handshaking) continue;
    const TimePoint deadline = full ? link.deadline - setup_.handshake_timeout + patience : link.deadline;
    if (now >= deadline) turn_away(link);
  }
}

void ConnectionManager::turn_away(Link& link) {
  ++turned_away_count_;
  fail(link, {});
}

void ConnectionManager::abandon() {
  for (const auto& link : links_) {
    link->state = Link::State::closed;
    link->connecting.reset();
    link->socket.reset();
  }
  any_closed_ = true;
  listener_socket_.reset();
  may_accept_ = false;
  for (UniqueFd* fd : {&epoll_, &control_epoll_, &wake_all_, &wake_control_}) fd->reset();
}

}  // namespace tutti::transport
