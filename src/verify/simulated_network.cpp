// simulated_network.cpp: packets in order, on time, late, or never.
// SPDX-License-Identifier: Apache-2.0
#include "verify/simulated_network.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tutti::link {

const LinkCost& SimulatedNetwork::cost(int from, int to) const {
  const bool same_node = from / options_.ranks_per_node == to / options_.ranks_per_node;
  return same_node ? options_.inside_node : options_.between_nodes;
}

Duration SimulatedNetwork::sending_time(int from, int to, std::int64_t bytes) const {
  return Duration(static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / cost(from, to).bytes_per_second));
}

SimulatedNetwork::Direction& SimulatedNetwork::direction(int from, int to) {
  return directions_[static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(options_.size) +
                     static_cast<std::uint64_t>(to)];
}

void SimulatedNetwork::open(int from, int to) {
  if (from == to || !links_[from].insert(to).second) return;
  if (killed_.contains(to) || closed_.contains(to)) {
    tell(from, to, Packet::Kind::refused, fmt::format("rank {} refused the connection", to));
    return;
  }
  links_[to].insert(from);
  if (direction(from, to).cut || direction(to, from).cut) {
    tell(from, to, Packet::Kind::lost, fmt::format("no connection to rank {}: the link is cut", to));
  }
}

void SimulatedNetwork::carry(Packet packet) {
  const int from = packet.from;
  const int to = packet.to;
  open(from, to);
  Direction& way = direction(from, to);
  if (way.cut || killed_.contains(from)) return;
  const Duration latency = cost(from, to).latency;
  Duration travel =
      latency +
      Duration(static_cast<std::int64_t>(static_cast<double>(latency.count()) * options_.jitter * random_.unit()));
  if (const auto delay = delays_.find(to); delay != delays_.end() && events_->now() < delay->second.until) {
    travel += delay->second.extra;
  }
  Channel& channel = packet.kind == Packet::Kind::control ? way.control : way.data;
  TimePoint ready = events_->now() + travel;
  if (!channel.queue.empty()) ready = std::max(ready, channel.queue.back().ready);
  channel.queue.push_back({ready, std::move(packet)});
  schedule(from, to, channel);
}

void SimulatedNetwork::schedule(int from, int to, Channel& channel) {
  if (channel.scheduled || channel.queue.empty()) return;
  channel.scheduled = true;
  const TimePoint time = std::max(channel.queue.front().ready, direction(from, to).stalled_until);
  if (time == TimePoint::max()) return;           // stalled for ever
  events_->at(time, [this, from, to, &channel] {  // directions are nodes of a map: they stay where they are
    channel.scheduled = false;
    arrive(from, to, channel);
  });
}

void SimulatedNetwork::arrive(int from, int to, Channel& channel) {
  const TimePoint now = events_->now();
  while (!channel.queue.empty() && channel.queue.front().ready <= now && direction(from, to).stalled_until <= now) {
    Packet packet = std::move(channel.queue.front().packet);
    channel.queue.pop_front();
    if (killed_.contains(to)) continue;
    trace_.add(static_cast<std::uint64_t>(now.time_since_epoch().count()))
        .add(static_cast<std::uint64_t>(packet.kind) << 8 | packet.type)
        .add(static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to))
        .add(packet.payload.size());
    deliver_(std::move(packet));
  }
  schedule(from, to, channel);
}

void SimulatedNetwork::stall(int a, int b, TimePoint until) {
  for (Direction* way : {&direction(a, b), &direction(b, a)}) way->stalled_until = std::max(way->stalled_until, until);
}

void SimulatedNetwork::delay(int rank, Duration extra, TimePoint until) { delays_[rank] = {extra, until}; }

void SimulatedNetwork::cut(int from, int to) {
  Direction& way = direction(from, to);
  if (std::exchange(way.cut, true)) return;
  way.data.queue.clear();
  way.control.queue.clear();
  if (links_[from].contains(to))
    tell(from, to, Packet::Kind::lost, fmt::format("rank {} no longer answers on this link", to));
}

void SimulatedNetwork::kill(int rank) {
  if (!killed_.insert(rank).second) return;
  for (const int peer : std::set<int>(links_[rank])) {
    if (direction(rank, peer).cut || direction(peer, rank).cut) continue;
    tell(peer, rank, Packet::Kind::lost, fmt::format("the connection to rank {} was closed without a goodbye", rank));
  }
}

void SimulatedNetwork::close(int rank) {
  for (const int peer : std::set<int>(links_[rank])) {
    carry({.kind = Packet::Kind::goodbye, .from = rank, .to = peer});
  }
  closed_.insert(rank);
}

void SimulatedNetwork::tell(int whom, int peer, Packet::Kind kind, std::string reason) {
  const Duration delay =
      options_.detection +
      Duration(static_cast<std::int64_t>(static_cast<double>(options_.detection.count()) * random_.unit()));
  events_->at(events_->now() + delay, [this, whom, peer, kind, reason = std::move(reason)] {
    if (killed_.contains(whom)) return;
    deliver_({.kind = kind, .from = peer, .to = whom, .reason = reason});
  });
}

}  // namespace tutti::link
