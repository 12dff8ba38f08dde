// cluster.hpp: the machine that is simulated: how ranks lie on hosts, and how fast everything is.
// SPDX-License-Identifier: Apache-2.0
//
// A rank is one thread: what it does for messages, copies and reductions happens one after the other on its core. Hosts
// have a network card that all ranks of the host share, one message after the other and each direction for itself. Bytes
// flow through: the receiver works on the first of them while the last are still on their way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/cost.hpp"
#include "sim/throughput_curve.hpp"

namespace tutti::sim {

struct SlowRank {
  int rank = 0;
  double factor = 1;  // all that the rank does itself takes so much longer
};

struct Cluster {
  int ranks = 8;
  int ranks_per_host = 8;  // consecutive ranks; the last host may have fewer
  int cores = 0;           // per host, for the ranks to share; 0: one for each rank
  CostModel speed{};       // for the bytes that a core moves and reduces itself, the paces below count
  double call = 0;         // that a rank spends on a call before it begins with its plan
  ThroughputCurve inside{
      CostModel{}.inside.seconds_per_byte};  // of a core, at each end of a message; between hosts the card besides
  /// The same for messages that are sent at once, if they differ. The ends of a longer one wait for each other now and then: their
  /// cores work as long per byte as for short ones, and are free for other messages for the rest of the throughput above. Where
  /// ranks share cores somebody always has work, and the throughput above is all work.
  std::optional<ThroughputCurve> inside_eager{};
  ThroughputCurve reduce{CostModel{}.reduce_seconds_per_byte};
  ThroughputCurve copy{1 / 8e9};
  /// What leaves the hosts shares a network core of hosts × bandwidth ÷ oversubscription.
  double oversubscription = 1;
  std::int64_t eager_bytes_max = 64 << 10;  // a longer message is announced and waits for its receiver
  double turn = 0;                          // where ranks share cores: until a core is handed from one to the next
  double wake = 20e-6;                      // … and until an idle core runs a rank
  std::vector<SlowRank> slow{};
  int dead = -1;  // a rank that does nothing at all

  /// At which a core puts in, or takes out, a message of so many bytes.
  [[nodiscard]] const ThroughputCurve& throughput_of(std::int64_t message_bytes) const {
    return inside_eager && (message_bytes <= eager_bytes_max || !shares_cores()) ? *inside_eager : inside;
  }
  /// That both ends of such a message wait for each other.
  [[nodiscard]] double seconds_of_waiting(std::int64_t message_bytes, std::int64_t bytes_since) const {
    if (!inside_eager || message_bytes <= eager_bytes_max || shares_cores()) return 0;
    return std::max(
        0.0, 2 * (inside.seconds(message_bytes, bytes_since) - inside_eager->seconds(message_bytes, bytes_since)));
  }
  [[nodiscard]] int hosts() const { return (ranks + ranks_per_host - 1) / ranks_per_host; }
  [[nodiscard]] int host_of(int rank) const { return rank / ranks_per_host; }
  [[nodiscard]] bool shares_cores() const { return cores > 0 && cores < ranks_per_host; }
  [[nodiscard]] std::vector<int> node_of() const;
  /// Every rank and every host is like the others, so that ranks which act alike need not all be simulated.
  [[nodiscard]] bool uniform() const { return slow.empty() && dead < 0 && ranks % ranks_per_host == 0; }
};

/// InvalidArgument that names the option which makes no sense.
void check(const Cluster& cluster);

/// "4096 ranks on 512 hosts of 8; between hosts 25 µs and 1.2 GB/s, …".
std::string describe(const Cluster& cluster);
/// The same without the numbers of ranks and hosts.
std::string describe_figures(const Cluster& cluster);

}  // namespace tutti::sim
