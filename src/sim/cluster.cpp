// cluster.cpp: the machine that is simulated.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::sim {

namespace {

constexpr int ranks_max = 16384;

void refuse_unless(bool fine, const std::string& problem) {
  if (!fine) throw InvalidArgument(problem);
}

std::string link_text(const CostModel::Link& link) {
  return fmt::format("{:.3g} µs, {:.3g} GB/s", link.latency * 1e6, 1e-9 / link.seconds_per_byte);
}

}  // namespace

std::vector<int> Cluster::node_of() const {
  std::vector<int> nodes(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) nodes[static_cast<std::size_t>(rank)] = host_of(rank);
  return nodes;
}

void check(const Cluster& cluster) {
  refuse_unless(cluster.ranks >= 1 && cluster.ranks <= ranks_max,
                fmt::format("--ranks {}: 1 to {} ranks can be simulated", cluster.ranks, ranks_max));
  refuse_unless(cluster.ranks_per_host >= 1,
                fmt::format("--ranks-per-host {}: at least 1 is needed", cluster.ranks_per_host));
  refuse_unless(cluster.cores >= 0, fmt::format("--cores {}: a number of cores is needed", cluster.cores));
  refuse_unless(cluster.oversubscription >= 1,
                fmt::format("--oversubscription {}: 1 (none) or more is needed", cluster.oversubscription));
  for (const SlowRank& slow : cluster.slow) {
    refuse_unless(slow.rank >= 0 && slow.rank < cluster.ranks,
                  fmt::format("--slow {}:{}: the ranks are 0 to {}", slow.rank, slow.factor, cluster.ranks - 1));
    refuse_unless(slow.factor > 0, fmt::format("--slow {}:{}: a factor above 0 is needed, such as {}:4", slow.rank,
                                               slow.factor, slow.rank));
  }
  refuse_unless(cluster.dead < cluster.ranks,
                fmt::format("--dead {}: the ranks are 0 to {}", cluster.dead, cluster.ranks - 1));
}

std::string describe(const Cluster& cluster) {
  std::string text = fmt::format("{} rank{} on {} host{}", cluster.ranks, cluster.ranks == 1 ? "" : "s",
                                 cluster.hosts(), cluster.hosts() == 1 ? "" : "s");
  if (cluster.hosts() > 1) text += fmt::format(" of {}", cluster.ranks_per_host);
  return text + "; " + describe_figures(cluster);
}

std::string describe_figures(const Cluster& cluster) {
  const CostModel& speed = cluster.speed;
  std::string text = cluster.hosts() > 1 ? fmt::format("between {}; ", link_text(speed.between)) : "";
  text += fmt::format("inside {}; {:.3g} µs per message", link_text(speed.inside), speed.overhead * 1e6);
  if (cluster.oversubscription > 1) text += fmt::format("; core oversubscribed {:.3g}×", cluster.oversubscription);
  if (cluster.shares_cores()) text += fmt::format("; {} cores per host", cluster.cores);
  for (const SlowRank& slow : cluster.slow) text += fmt::format("; rank {} {:.3g}× slower", slow.rank, slow.factor);
  if (cluster.dead >= 0) text += fmt::format("; rank {} dead", cluster.dead);
  return text;
}

}  // namespace tutti::sim
