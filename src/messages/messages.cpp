// messages.cpp: messages over links, as their callers see them.
// SPDX-License-Identifier: Apache-2.0
#include "messages/messages.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::messages {

namespace {

// The network asks the system, which costs more than a message through shared memory does. While it has nothing under way but control
// messages, once in a while is enough; even the clock is looked at only now and then.
constexpr Duration network_interval = std::chrono::microseconds(50);
constexpr unsigned polls_per_look_at_clock = 64;

}  // namespace

Messages::Messages(MessagesSetup setup)
    : rank_(setup.rank),
      size_(std::max(setup.size, 0)),
      clock_(setup.clock),
      network_(std::move(setup.network)),
      local_link_(std::move(setup.local_link)),
      peers_(static_cast<std::size_t>(size_)),
      queue_(rank_),
      self_(rank_, queue_, network_->limits()),
      sender_(rank_, *network_),
      receiver_(
          {.rank = rank_, .network = *network_, .sender = sender_, .self = self_, .queue = queue_, .peers = peers_}) {
  if (rank_ < 0 || rank_ >= size()) {
    throw InvalidArgument(fmt::format("rank {} is not in a world of {} ranks", rank_, size()));
  }
  for (int rank = 0; rank < size(); ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.rank = rank;
    peer.is_remote = true;
    if (rank == rank_) continue;
    peer.is_remote = !local_link_ || !setup.local[static_cast<std::size_t>(rank)];
    peer.link = peer.is_remote ? network_.get() : local_link_.get();
    peer.limits = peer.link->limits();
    peer.credit_bytes = peer.limits.credit_bytes;
    remote_peer_count_ += peer.is_remote ? 1 : 0;
  }
  name_ = !local_link_ ? network_->name() : local_link_->name();
  if (local_link_ && remote_peer_count_ > 0) name_ += fmt::format("+{}", network_->name());
  network_->listen(this);
  if (local_link_) local_link_->listen(this);
}

Messages::~Messages() = default;

void Messages::listen(TransportListener* listener) {
  listener_ = listener;
  receiver_.listen(listener);
}

void Messages::reject_rank(int rank) const {
  throw InvalidArgument(fmt::format("rank {}: there is no rank {} in a world of {} ranks", rank_, rank, size_));
}

std::string_view Messages::link_name(int peer) const {
  if (peer == rank_) return "memory";
  return peers_[static_cast<std::size_t>(peer)].link->name();
}

void Messages::send(Transfer& transfer) {
  Peer& peer = checked_peer(transfer.peer);
  if (transfer.envelope.bytes < 0) [[unlikely]]
    throw InvalidArgument(fmt::format("rank {}: a message of {} bytes cannot be sent", rank_, transfer.envelope.bytes));
  transfer.error.clear();
  transfer.refusal = Transfer::Refusal::none;
  if (peer.is_gone) [[unlikely]]
    return fail(transfer, peer.reason);
  if (peer.is_remote) poll_network_soon();
  if (peer.link != nullptr) [[likely]]
    return sender_.send(peer, transfer);
  self_.send(transfer);
  has_self_work_ = true;
}

void Messages::recv(Transfer& transfer) {
  transfer.error.clear();
  transfer.refusal = Transfer::Refusal::none;
  if (transfer.peer != any_peer && checked_peer(transfer.peer).is_remote) poll_network_soon();
  receiver_.recv(transfer);
}

bool Messages::try_recv(Transfer& transfer, int spins) {
  if (transfer.peer < 0 || transfer.peer >= size_) return false;
  if (queue_.posted_count() > 0 || queue_.unexpected_count() > 0) return false;
  Peer& peer = peers_[static_cast<std::size_t>(transfer.peer)];
  return !peer.is_gone && peer.link != nullptr && receiver_.try_recv(peer, transfer, spins);
}

void Messages::cancel(Transfer& transfer) {
  if (transfer.state != Transfer::State::pending) return;
  switch (stage_of(transfer)) {
    case Stage::waiting:
    case Stage::brief_in_link:
    case Stage::full_in_link:
    case Stage::announced: sender_.cancel(checked_peer(transfer.peer), transfer); break;
    case Stage::to_self:
    case Stage::kept_for_self: self_.cancel(transfer); break;
    case Stage::posted:
    case Stage::landing:
    case Stage::inbound: receiver_.cancel(transfer); break;
    case Stage::again: queue_.cancel_used_again(transfer); break;
  }
  transfer.state = Transfer::State::idle;
  transfer.handle = nullptr;
}

bool Messages::withdraw(Transfer& transfer) {
  if (transfer.state != Transfer::State::pending) return false;
  switch (stage_of(transfer)) {
    case Stage::waiting:
    case Stage::announced:
      if (!sender_.withdraw(checked_peer(transfer.peer), transfer)) {
        poll_network_soon();
        return false;
      }
      break;
    case Stage::to_self:
    case Stage::kept_for_self:
      if (!self_.withdraw(transfer)) return false;
      break;
    case Stage::posted: receiver_.cancel(transfer); break;
    case Stage::brief_in_link:
    case Stage::full_in_link:
    case Stage::landing:
    case Stage::inbound:
    case Stage::again: return false;
  }
  transfer.state = Transfer::State::idle;
  transfer.handle = nullptr;
  return true;
}

bool Messages::reserve(Transfer& probe) {
  const MatchingQueue::Found found = queue_.look(probe);
  if (found.message == nullptr) return false;
  queue_.reserve(*found.message, probe);
  return true;
}

void Messages::accept(Transfer& probe, Transfer& receive) {
  receive.error.clear();
  receive.refusal = Transfer::Refusal::none;
  receive.state = Transfer::State::pending;
  UnexpectedMessage& message = queue_.release(probe);
  const int rank = message.peer;
  if (peers_[static_cast<std::size_t>(rank)].is_remote) poll_network_soon();
  const MatchingQueue::Fit fit = queue_.settle(receive, rank, message.envelope, message.shape.get());
  if (fit == MatchingQueue::Fit::refused) return receiver_.discard(message);
  if (receiver_.use(message, receive, this_message)) return;
  receive.refusal = Transfer::Refusal::taken_back;
  fail(receive, receiver_.announced().taken_back(rank));
}

void Messages::release(Transfer& probe) {
  if (probe.handle != nullptr) receiver_.offer_again(queue_.release(probe));
}

void Messages::give_back(Transfer& receive) {
  if (receive.state == Transfer::State::pending && stage_of(receive) == Stage::posted) return cancel(receive);
  receiver_.give_back(receive);
  receive.state = Transfer::State::idle;
  receive.handle = nullptr;
}

void Messages::discard_all(UnexpectedMessage* chain) {
  while (chain != nullptr) receiver_.discard(*std::exchange(chain, chain->next));
}

void Messages::discard_reserved(std::optional<std::uint64_t> group, std::string_view why) {
  for (UnexpectedMessage* const message : std::vector(queue_.reserved())) {
    if (group && message->envelope.group != *group) continue;
    queue_.lose(*message, fmt::format("rank {}: {}", rank_, why), Transfer::Refusal::none);
    receiver_.discard(*message);
  }
}

void Messages::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  discard_all(queue_.forget(group, up_to_sequence));
  if (up_to_sequence == every_sequence) discard_reserved(group, "the group of the message is gone");
}

void Messages::refuse_messages() {
  receiver_.take_only(Takes::collectives);
  self_.refuse_messages();
  for (const std::uint32_t channel : {point_to_point_channel, internal_channel}) discard_all(queue_.forget(channel));
  discard_reserved(std::nullopt, "this rank leaves the job");
}

void Messages::post(int peer, std::span<const std::byte> message) {
  checked_peer(peer);
  if (message.size() > Network::control_bytes_max) {
    throw InvalidArgument(fmt::format("rank {}: a control message of {} bytes is too long, at most {} are allowed",
                                      rank_, message.size(), Network::control_bytes_max));
  }
  poll_network_soon();
  if (peer != rank_) return network_->post(peer, message);
  self_.post(message);
  has_self_work_ = true;
}

void Messages::attach(int peer) {
  checked_peer(peer);
  poll_network_soon();
  if (peer != rank_) network_->attach(peer);
}

bool Messages::poll() {
  bool moved = local_link_ && local_link_->poll();
  if (is_network_due()) moved |= poll_network();
  if (receiver_.announced().is_getting()) moved |= receiver_.announced().get();
  if (!sender_.is_settled()) moved |= sender_.flush();
  if (has_self_work_.load(std::memory_order_relaxed)) [[unlikely]] {
    has_self_work_ = false;
    self_.deliver(*listener_);
    moved = true;
  }
  return moved;
}

bool Messages::is_network_due() {
  if (!local_link_ || network_is_busy_ || poll_network_.load(std::memory_order_relaxed)) return true;
  // Beside reading a peer's memory, a look at the network costs nothing. A rank that is about to sleep must not miss anything.
  if (receiver_.announced().is_getting() || local_link_->is_last_poll_before_sleep()) return true;
  return ++polls_ % polls_per_look_at_clock == 0 && clock_.now() - network_polled_at_ >= network_interval;
}

bool Messages::poll_network() {
  if (!local_link_) return network_->poll();
  poll_network_.store(false, std::memory_order_relaxed);
  const bool moved = network_->poll();
  network_is_busy_ = moved || busy_outside();
  network_polled_at_ = clock_.now();
  return moved;
}

void Messages::wait(TimePoint until, Events events) {
  if (!has_self_work_) network_->wait(until, events);
  poll_network_soon();
}

bool Messages::busy_outside() const {
  if (!local_link_) return true;
  if (sender_.remote_count() > 0 || receiver_.remote_count() > 0 || self_.has_sends()) return true;
  const auto local_posted = static_cast<std::size_t>(receiver_.local_posted_count());
  return remote_peer_count_ > 0 && queue_.posted_count() > local_posted;
}

bool Messages::is_flushed() const {
  return sender_.is_settled() && !self_.has_sends() && network_->is_flushed() &&
         (!local_link_ || local_link_->is_flushed());
}

void Messages::give_up(int rank) {
  peers_[static_cast<std::size_t>(rank)].is_given_up = true;
  network_->give_up(rank);
  if (local_link_) local_link_->give_up(rank);
}

void Messages::sent(void* owner, std::int64_t payload_bytes) {
  auto& transfer = *static_cast<Transfer*>(owner);
  sender_.sent(peers_[static_cast<std::size_t>(transfer.peer)], transfer, payload_bytes);
}

void Messages::control(int peer, std::span<const std::byte> message) {
  if (!closing_) listener_->control(peer, message);
}

// Told once per peer, by the link that notices first.
void Messages::lost(int rank, std::string_view reason) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  disconnect_lost(peer, reason);
  if (!closing_ && !std::exchange(peer.was_told, true)) listener_->lost(rank, reason);
}

void Messages::unreachable(int rank, std::string_view reason) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  disconnect_lost(peer, reason);
  if (!closing_ && !std::exchange(peer.was_told, true)) listener_->unreachable(rank, reason);
}

void Messages::disconnect_lost(Peer& peer, std::string_view reason) {
  disconnect(peer, fmt::format("rank {}: lost rank {} ({}); see whether that rank crashed or its host is unreachable",
                               rank_, peer.rank, reason));
}

void Messages::parted(int rank) {
  disconnect(peers_[static_cast<std::size_t>(rank)],
             fmt::format("rank {}: rank {} has said goodbye and closed its connections; it ended before this message "
                         "was exchanged, check that all ranks make the same calls",
                         rank_, rank));
  if (!closing_) listener_->parted(rank);
}

// What the peer wrote on a link beside the network, before it ended, still counts.
void Messages::disconnect(Peer& peer, std::string reason) {
  if (peer.is_gone) return;
  if (!peer.is_remote && !closing_) peer.link->drain(peer.rank);
  if (peer.is_gone) return;  // it had written nonsense
  peer.is_gone = true;
  peer.reason = std::move(reason);
  if (!peer.is_remote) peer.link->disconnect(peer.rank);
  sender_.fail_all(peer);
  receiver_.fail_all(peer);
}

// First what waits for room, for as long as the others read; then no memory is exposed any more; then the goodbyes.
void Messages::close(TimePoint deadline) {
  if (std::exchange(closed_, true)) return;
  closing_ = true;
  receiver_.take_only(Takes::nothing);
  while (!is_flushed() && clock_.now() < deadline) {
    if (poll()) continue;
    const TimePoint soon = clock_.now() + std::chrono::milliseconds(1);
    if (!network_->wait(std::min(deadline, soon), Events::all)) break;
    poll_network_soon();
  }
  sender_.revoke_all(peers_);
  network_->close(deadline);
  for (Peer& peer : peers_) {
    if (peer.rank != rank_) disconnect(peer, fmt::format("rank {}: the transport is closed", rank_));
  }
}

void Messages::abandon() {
  network_->abandon();
  if (local_link_) local_link_->abandon();
}

}  // namespace tutti::messages
