// messages.hpp: the path of messages from one rank to another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "sim/event_queue.hpp"
#include "sim/network.hpp"
#include "sim/workload.hpp"

namespace tutti::sim {

class Messages {
 public:
  Messages(const Workload& workload, const Cluster& cluster, EventQueue& events)
      : workload_(workload),
        cluster_(cluster),
        network_(cluster, (workload.period + cluster.ranks_per_host - 1) / cluster.ranks_per_host),
        events_(events) {}

  /// A task of a simulated rank.
  struct End {
    std::uint32_t rank = 0, task = 0;
  };
  /// The simulated rank that stands for the peer.
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t rank, const Task& task) const {
    const int peer = (static_cast<int>(rank) + task.shift) % workload_.ranks;
    return static_cast<std::uint32_t>(peer % workload_.period);
  }
  [[nodiscard]] End receive_of(std::uint32_t rank, const Task& send) const {
    const std::uint32_t peer = peer_of(rank, send);
    return {peer, workload_.of(static_cast<int>(peer)).recvs.task(workload_.ranks - send.shift, send.tag)};
  }
  [[nodiscard]] End send_of(std::uint32_t rank, const Task& receive) const {
    const std::uint32_t peer = peer_of(rank, receive);
    return {peer, workload_.of(static_cast<int>(peer)).sends.task(workload_.ranks - receive.shift, receive.tag)};
  }
  [[nodiscard]] double latency(std::uint32_t rank, const Task& task) const {
    return std::max(0.0, network_.link(same_host(rank, task)).latency);
  }

  [[nodiscard]] double seconds_of_waiting(std::uint32_t rank, const Task& task) const {
    return same_host(rank, task) ? cluster_.seconds_of_waiting(task.bytes, task.bytes_since) : 0;
  }

  /// The core of `rank` hands the bytes over from `begin` to `end`.
  void transmit(std::uint32_t rank, const Task& send, double begin, double end, std::uint32_t depth) {
    const End to = receive_of(rank, send);
    const bool short_one = send.bytes <= Network::first_bytes;
    const double share = static_cast<double>(Network::first_bytes) / static_cast<double>(send.bytes);
    const double first = short_one ? end : begin + (end - begin) * share;
    if (same_host(rank, send)) {
      if (!short_one) last_bytes_[key(to)] = end + cluster_.speed.inside.latency;
      const double here = std::max(begin, first + cluster_.speed.inside.latency);
      return events_.push(here, Happening::arrived, to.rank, to.task, depth);
    }
    const double latency = cluster_.speed.between.latency;
    const auto out = network_.leave(cluster_.host_of(static_cast<int>(rank)), send.bytes, first);
    if (!short_one) last_bytes_[key(to)] = std::max(out.end, end) + latency;
    if (network_.has_core()) {
      events_.push(out.begin, Happening::at_core, to.rank, to.task, depth);
    } else {
      events_.push(out.begin + latency, Happening::at_card, to.rank, to.task, depth);
    }
  }
  void cross_core(const Event& event, std::int64_t bytes) {
    const auto through = network_.cross_core(bytes, event.time);
    const double latency = cluster_.speed.between.latency;
    delay_last({event.rank, event.task}, through.end + latency);
    events_.push(through.begin + latency, Happening::at_card, event.rank, event.task, event.depth);
  }
  void enter_host(const Event& event, std::int64_t bytes) {
    const auto in = network_.enter(cluster_.host_of(static_cast<int>(event.rank)), bytes, event.time);
    delay_last({event.rank, event.task}, in.end);
    const std::int64_t first = std::min(bytes, Network::first_bytes);
    events_.push(in.begin + static_cast<double>(first) * cluster_.speed.between.seconds_per_byte, Happening::arrived,
                 event.rank, event.task, event.depth);
  }
  /// When the last bytes of a message that flows (it is longer than Network::first_bytes) come to its receiver. Once.
  double take_last(const End& receive) {
    const auto last = last_bytes_.find(key(receive));
    const double time = last->second;
    last_bytes_.erase(last);
    return time;
  }

 private:
  [[nodiscard]] bool same_host(std::uint32_t rank, const Task& task) const {
    const int real = static_cast<int>(rank);
    return cluster_.host_of(real) == cluster_.host_of((real + task.shift) % workload_.ranks);
  }
  void delay_last(const End& receive, double until) {
    if (const auto last = last_bytes_.find(key(receive)); last != last_bytes_.end())
      last->second = std::max(last->second, until);
  }
  static std::uint64_t key(const End& end) { return std::uint64_t{end.rank} << 32 | end.task; }

  const Workload& workload_;
  const Cluster& cluster_;
  Network network_;
  EventQueue& events_;
  std::unordered_map<std::uint64_t, double> last_bytes_;  // by receive
};

}  // namespace tutti::sim
