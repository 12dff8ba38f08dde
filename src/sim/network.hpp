// network.hpp: how long bytes take from one rank to another, with contention.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cluster.hpp"

namespace tutti::sim {

/// Cards and core serve one message after the other, in order of arrival. Messages are pipelined: a message leaves as
/// soon as its first bytes have arrived.
class Network {
 public:
  static constexpr std::int64_t first_bytes = 16 << 10;  // what must be there before the next one begins

  /// `hosts`: those that are simulated, by which the numbers of hosts are reduced.
  Network(const Cluster& cluster, int hosts)
      : cluster_(cluster),
        hosts_(hosts),
        core_seconds_per_byte_(cluster.speed.between.seconds_per_byte * cluster.oversubscription / hosts),
        sending_until_(static_cast<std::size_t>(hosts)),
        receiving_until_(static_cast<std::size_t>(hosts)) {}

  [[nodiscard]] bool has_core() const { return cluster_.oversubscription > 1; }
  [[nodiscard]] const CostModel::Link& link(bool same_host) const {
    return same_host ? cluster_.speed.inside : cluster_.speed.between;
  }

  struct Passage {
    double begin = 0, end = 0;
  };
  /// Out of a host: from when on the first bytes are `there`.
  Passage leave(int host, std::int64_t bytes, double there) {
    return pass(sending_until_[index(host)], bytes, there, cluster_.speed.between.seconds_per_byte);
  }
  Passage cross_core(std::int64_t bytes, double there) {
    return pass(core_until_, bytes, there, core_seconds_per_byte_);
  }
  Passage enter(int host, std::int64_t bytes, double there) {
    return pass(receiving_until_[index(host)], bytes, there, cluster_.speed.between.seconds_per_byte);
  }

 private:
  [[nodiscard]] std::size_t index(int host) const { return static_cast<std::size_t>(host % hosts_); }
  static Passage pass(double& busy_until, std::int64_t bytes, double there, double seconds_per_byte) {
    const double begin = std::max(busy_until, there);
    busy_until = begin + static_cast<double>(bytes) * seconds_per_byte;
    return {.begin = begin, .end = busy_until};
  }

  const Cluster& cluster_;
  int hosts_;
  double core_seconds_per_byte_;
  double core_until_ = 0;
  std::vector<double> sending_until_, receiving_until_;
};

}  // namespace tutti::sim
