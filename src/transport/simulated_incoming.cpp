// simulated_incoming.cpp: what a simulated rank does with the packets that came in.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transport/simulated_endpoint.hpp"
#include "transport/stage.hpp"

namespace tutti::transport {

void SimulatedEndpoint::deliver(Packet packet) {
  inbox_.push_back(std::move(packet));
  host_->make_ready(rank_);
}

bool SimulatedEndpoint::poll() {
  if (closed_ || !host_->may_run(rank_)) return false;
  bool moved = !sent_.empty();
  for (const auto& sending : std::exchange(sent_, {})) {
    if (sending->transfer != nullptr) transport::finish(*sending->transfer);
    sendings_.erase(sending->id);
  }
  while (!inbox_.empty() && !closed_) {  // what a listener does may close this endpoint
    Packet packet = std::move(inbox_.front());
    inbox_.pop_front();
    handle(packet);
    moved = true;
  }
  return moved;
}

void SimulatedEndpoint::handle(Packet& packet) {
  if (lost_.contains(packet.from)) return;  // nothing is heard of a peer after its loss
  heard_.insert(packet.from);
  switch (packet.kind) {
    case Packet::Kind::eager:
    case Packet::Kind::announce: return on_message(packet);
    case Packet::Kind::cts: return on_cts(packet);
    case Packet::Kind::reject: return on_decline(packet);
    case Packet::Kind::fragment: return on_fragment(packet);
    case Packet::Kind::withdraw: return on_withdraw(packet);
    case Packet::Kind::credit: used_credit_[packet.from] -= packet.offset; return;
    case Packet::Kind::control: return listener_->control(packet.from, packet.payload);
    case Packet::Kind::goodbye: on_gone(packet.from, "it has left"); return listener_->parted(packet.from);
    case Packet::Kind::refused:
    case Packet::Kind::lost:
      if (gone_.contains(packet.from)) return;  // it said goodbye before
      lost_.insert(packet.from);
      on_gone(packet.from, packet.reason);
      if (packet.kind == Packet::Kind::refused) return listener_->unreachable(packet.from, packet.reason);
      return listener_->lost(packet.from, packet.reason);
  }
}

void SimulatedEndpoint::on_message(Packet& packet) {
  const int peer = packet.from;
  const bool announced = packet.kind == Packet::Kind::announce;
  const auto give_back = [&] {
    if (announced) return answer(Packet::Kind::reject, peer, packet.id);
    answer(Packet::Kind::credit, peer, 0, packet.envelope.bytes);
  };
  if (listener_->arrived(peer, packet.envelope) == TransportListener::Verdict::drop) return give_back();
  const MatchingQueue::Match match = matching_queue_.match(peer, packet.envelope);
  if (match.fit == MatchingQueue::Fit::wrong_size) return give_back();
  if (match.fit == MatchingQueue::Fit::none) {
    UnexpectedMessage& unexpected = matching_queue_.keep(peer, packet.envelope);
    unexpected.announced = announced;
    unexpected.id = packet.id;
    if (!announced) std::copy(packet.payload.begin(), packet.payload.end(), matching_queue_.make_room(unexpected));
    return;
  }
  if (announced) return expect_fragments(*match.receive, peer, packet.id);
  std::copy(packet.payload.begin(), packet.payload.end(), match.receive->to);
  transport::finish(*match.receive);
  give_back();
}

void SimulatedEndpoint::expect_fragments(Transfer& receive, int peer, std::uint64_t id) {
  receivings_[{peer, id}] = {&receive, receive.envelope.bytes};
  answer(Packet::Kind::cts, peer, id);
}

void SimulatedEndpoint::on_cts(const Packet& packet) {
  const auto found = sendings_.find(packet.id);
  if (found == sendings_.end()) return;  // cancelled; the receiver has been told
  const std::shared_ptr<Sending>& sending = found->second;
  for (std::int64_t offset = 0; offset < sending->bytes; offset += options_.segment_bytes) {
    Packet fragment{
        .kind = Packet::Kind::fragment, .from = rank_, .to = packet.from, .id = packet.id, .offset = offset};
    depart({std::move(fragment), sending, std::min(options_.segment_bytes, sending->bytes - offset)});
  }
}

void SimulatedEndpoint::on_decline(const Packet& packet) {
  const auto found = sendings_.find(packet.id);
  if (found != sendings_.end()) finish(found->second);
}

void SimulatedEndpoint::on_fragment(const Packet& packet) {
  const auto found = receivings_.find({packet.from, packet.id});
  if (found == receivings_.end()) return;
  Receiving& receiving = found->second;
  if (receiving.transfer != nullptr) {
    std::copy(packet.payload.begin(), packet.payload.end(), receiving.transfer->to + packet.offset);
  }
  receiving.missing_bytes -= static_cast<std::int64_t>(packet.payload.size());
  if (receiving.missing_bytes > 0) return;
  if (receiving.transfer != nullptr) transport::finish(*receiving.transfer);
  receivings_.erase(found);
}

void SimulatedEndpoint::on_withdraw(const Packet& packet) {
  const auto found = receivings_.find({packet.from, packet.id});
  if (found != receivings_.end()) {
    if (Transfer* const transfer = found->second.transfer; transfer != nullptr) {
      fail(*transfer, fmt::format("rank {}: rank {} took its message back", rank_, packet.from));
    }
    receivings_.erase(found);
    return;
  }
  withdrawn_.insert({packet.from, packet.id});
}

void SimulatedEndpoint::on_gone(int peer, const std::string& reason) {
  gone_.emplace(peer, reason);
  const std::string why = unreachable(peer);
  for (auto entry = sendings_.begin(); entry != sendings_.end();) {
    const auto sending = entry->second;
    if (sending->peer != peer) {
      ++entry;
      continue;
    }
    if (sending->transfer != nullptr) fail(*sending->transfer, why);
    sending->transfer = nullptr;
    entry = sendings_.erase(entry);
  }
  std::erase_if(receivings_, [&](const auto& entry) {
    if (entry.first.first != peer) return false;
    if (entry.second.transfer != nullptr) fail(*entry.second.transfer, why);
    return true;
  });
  for (Transfer* receive = matching_queue_.withdraw_all(peer); receive != nullptr;) {
    fail(*std::exchange(receive, receive->next), why);
  }
  drop_all(matching_queue_.forget_announced(peer));
}

void SimulatedEndpoint::drop(UnexpectedMessage& unexpected) {
  if (matching_queue_.use_again(unexpected, nullptr)) return;
  withdrawn_.erase({unexpected.peer, unexpected.id});
  if (unexpected.announced) {
    answer(Packet::Kind::reject, unexpected.peer, unexpected.id);
  } else {
    answer(Packet::Kind::credit, unexpected.peer, 0, unexpected.envelope.bytes);
  }
  matching_queue_.recycle(unexpected);
}

void SimulatedEndpoint::drop_all(UnexpectedMessage* chain) {
  while (chain != nullptr) drop(*std::exchange(chain, chain->next));
}

}  // namespace tutti::transport
