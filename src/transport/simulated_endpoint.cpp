// simulated_endpoint.cpp: sends, receives and the network card of one simulated rank.
// SPDX-License-Identifier: Apache-2.0
#include "transport/simulated_endpoint.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "transport/stage.hpp"

namespace tutti::transport {

namespace {

constexpr std::int64_t header_bytes = 64;
constexpr std::size_t simulated_control_bytes_max = 64 * 1024;

}  // namespace

SimulatedEndpoint::SimulatedEndpoint(int rank, const SimulationOptions& options, SimulatedHost& host)
    : rank_(rank), options_(options), host_(&host), matching_queue_(rank) {}

void SimulatedEndpoint::fail(Transfer& transfer, std::string why) { transport::fail(transfer, std::move(why)); }

std::string SimulatedEndpoint::unreachable(int peer) const {
  if (closed_) return fmt::format("rank {}: this transport was closed", rank_);
  const auto gone = gone_.find(peer);
  if (gone == gone_.end()) return {};
  return fmt::format("rank {}: no link to rank {}: {}", rank_, peer, gone->second);
}

void SimulatedEndpoint::send(Transfer& transfer) {
  if (std::string why = unreachable(transfer.peer); !why.empty()) return fail(transfer, std::move(why));
  transfer.state = Transfer::State::pending;
  auto sending = std::make_shared<Sending>();
  sending->transfer = &transfer;
  sending->id = next_id_++;
  sending->peer = transfer.peer;
  const std::int64_t bytes = sending->bytes = transfer.envelope.bytes;
  std::int64_t& used = used_credit_[transfer.peer];
  sending->eager = bytes <= options_.eager_bytes && used + bytes <= options_.credit_bytes;
  if (sending->eager) used += bytes;
  sendings_.emplace(sending->id, sending);
  host_->network().open(rank_, transfer.peer);
  Packet packet{.kind = sending->eager ? Packet::Kind::eager : Packet::Kind::announce,
                .from = rank_,
                .to = transfer.peer,
                .id = sending->id,
                .envelope = transfer.envelope};
  depart({std::move(packet), sending, sending->eager ? bytes : 0});
}

void SimulatedEndpoint::recv(Transfer& transfer) {
  const int peer = transfer.peer;
  const Envelope wanted = transfer.envelope;
  MatchingQueue::Found found = matching_queue_.post(transfer);
  while (found.fit != MatchingQueue::Fit::none &&
         withdrawn_.erase({found.unexpected->peer, found.unexpected->id}) > 0) {
    matching_queue_.recycle(*found.unexpected);  // its sender took it back: look for the next
    transfer.peer = peer;
    transfer.envelope = wanted;
    transfer.error.clear();
    found = matching_queue_.post(transfer);
  }
  if (found.fit == MatchingQueue::Fit::none) {
    std::string why = unreachable(peer);
    if (why.empty()) return;
    matching_queue_.withdraw(transfer);
    return fail(transfer, std::move(why));
  }
  UnexpectedMessage& unexpected = *found.unexpected;
  if (found.fit == MatchingQueue::Fit::wrong_size) return drop(unexpected);
  if (matching_queue_.use_again(unexpected, &transfer)) return;
  if (unexpected.announced) {
    expect_fragments(transfer, unexpected.peer, unexpected.id);
    return matching_queue_.recycle(unexpected);
  }
  std::copy_n(unexpected.payload.get(), unexpected.envelope.bytes, transfer.to);
  transport::finish(transfer);
  drop(unexpected);
}

void SimulatedEndpoint::cancel(Transfer& transfer) {
  if (transfer.state == Transfer::State::pending) {
    const auto sending = std::find_if(sendings_.begin(), sendings_.end(),
                                      [&](const auto& entry) { return entry.second->transfer == &transfer; });
    const auto receiving = std::find_if(receivings_.begin(), receivings_.end(),
                                        [&](const auto& entry) { return entry.second.transfer == &transfer; });
    if (sending != sendings_.end()) {
      take_back(std::shared_ptr(sending->second));
    } else if (receiving != receivings_.end()) {
      receiving->second.transfer = nullptr;
    } else if (!matching_queue_.cancel_used_again(transfer)) {
      matching_queue_.withdraw(transfer);
    }
  }
  transfer.state = Transfer::State::idle;
}

void SimulatedEndpoint::give_back(Transfer& receive) {
  const auto receiving = std::find_if(receivings_.begin(), receivings_.end(),
                                      [&](const auto& entry) { return entry.second.transfer == &receive; });
  const bool is_pending = receive.state == Transfer::State::pending;
  if (is_pending && receiving == receivings_.end() && receive.handle == nullptr) return cancel(receive);
  if (Transfer* const rest = matching_queue_.give_back(receive).rest) receiving->second.transfer = rest;
  receive.state = Transfer::State::idle;
  receive.handle = nullptr;
}

// What has not left yet never leaves; a receiver that knows of the message is told that it will not come. The packet that
// the card is busy with stays in its queue, so that the next one does not leave early; departed() throws it away.
void SimulatedEndpoint::take_back(const std::shared_ptr<Sending>& sending) {
  sending->transfer = nullptr;
  const auto waiting = departures_.begin() + (card_busy_ && !departures_.empty() ? 1 : 0);
  departures_.erase(std::remove_if(waiting, departures_.end(),
                                   [&](const Departure& departure) { return departure.sending == sending; }),
                    departures_.end());
  if (!sending->header_left && sending->eager) used_credit_[sending->peer] -= sending->bytes;
  if (sending->header_left && !sending->eager) answer(Packet::Kind::withdraw, sending->peer, sending->id);
  sendings_.erase(sending->id);
}

void SimulatedEndpoint::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  drop_all(matching_queue_.forget(group, up_to_sequence));
}

void SimulatedEndpoint::post(int peer, std::span<const std::byte> message) {
  if (message.size() > simulated_control_bytes_max) {
    throw InvalidArgument(fmt::format("rank {}: a control message of {} bytes to rank {}; at most {} are allowed",
                                      rank_, message.size(), peer, simulated_control_bytes_max));
  }
  if (closed_ || gone_.contains(peer)) return;
  host_->network().carry({.kind = Packet::Kind::control,
                          .from = rank_,
                          .to = peer,
                          .payload = std::vector<std::byte>(message.begin(), message.end())});
}

void SimulatedEndpoint::attach(int peer) {
  if (!closed_ && !gone_.contains(peer)) host_->network().open(rank_, peer);
}

void SimulatedEndpoint::wait(TimePoint until, Events) { host_->make_ready_at(rank_, until); }

void SimulatedEndpoint::close(TimePoint) {
  if (std::exchange(closed_, true)) return;
  for (const auto& [id, sending] : sendings_) {
    if (sending->transfer != nullptr)
      fail(*sending->transfer, fmt::format("rank {}: this transport was closed", rank_));
  }
  sendings_.clear();
  sent_.clear();
  departures_.clear();
  host_->network().close(rank_);
}

// ---- the network card

void SimulatedEndpoint::depart(Departure departure) {
  departures_.push_back(std::move(departure));
  start_card();
}

void SimulatedEndpoint::start_card() {
  if (card_busy_ || departures_.empty()) return;
  card_busy_ = true;
  const Departure& first = departures_.front();
  const Duration busy = host_->network().sending_time(rank_, first.packet.to, header_bytes + first.bytes);
  host_->events().at(host_->events().now() + busy, [this] { departed(); });
}

// The first packet has left: only now is the caller's memory read.
void SimulatedEndpoint::departed() {
  card_busy_ = false;
  if (!host_->alive(rank_) || departures_.empty()) return;
  Departure departure = std::move(departures_.front());
  departures_.pop_front();
  start_card();
  if (const auto& sending = departure.sending; sending != nullptr) {
    if (sending->transfer == nullptr) return;  // taken back while the card was busy with it
    sending->header_left = true;
    if (departure.bytes > 0) {
      const std::byte* const from = sending->transfer->from + departure.packet.offset;
      departure.packet.payload.assign(from, from + departure.bytes);
    }
    sending->left_bytes += departure.bytes;
    const bool announces = departure.packet.kind == Packet::Kind::announce;
    if (!announces && sending->left_bytes == sending->bytes) finish(sending);
  }
  host_->network().carry(std::move(departure.packet));
}

void SimulatedEndpoint::finish(const std::shared_ptr<Sending>& sending) {
  sent_.push_back(sending);
  host_->make_ready(rank_);
}

// Answers of the protocol are small and do not wait for the card.
void SimulatedEndpoint::answer(Packet::Kind kind, int peer, std::uint64_t id, std::int64_t bytes) {
  if (gone_.contains(peer)) return;
  host_->network().carry({.kind = kind, .from = rank_, .to = peer, .id = id, .offset = bytes});
}

}  // namespace tutti::transport
