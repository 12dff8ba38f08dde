// experiment.cpp: every algorithm for a call, side by side.
// SPDX-License-Identifier: Apache-2.0
#include "sim/experiment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::sim {

namespace {

void check_algorithms(const Experiment& experiment, const std::vector<Candidate>& candidates) {
  for (const Algorithm wanted : experiment.algorithms) {
    const bool serves = std::any_of(candidates.begin(), candidates.end(),
                                    [&](const Candidate& candidate) { return candidate.choice.algorithm == wanted; });
    if (serves) continue;
    std::string names;
    for (const Candidate& candidate : candidates)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(candidate.choice.algorithm));
    throw InvalidArgument(fmt::format("--algorithm {}: it does not serve {} on {} ranks and {} hosts; there is {}",
                                      name_of(wanted), name_of(experiment.verb), experiment.cluster.ranks,
                                      experiment.cluster.hosts(), names));
  }
}

Outcome outcome_of(const Cost& cost, int ranks) {
  return {.seconds = cost.time,
          .rounds = cost.rounds,
          .messages = cost.messages * ranks,
          .rank_messages = cost.messages,
          .rank_bytes = cost.bytes_sent,
          .ended = ranks};
}

}  // namespace

std::vector<Trial> run(const Experiment& experiment) {
  const Cluster& cluster = experiment.cluster;
  check(cluster);
  const Table& table = experiment.table;
  const Shape shape{
      .verb = experiment.verb, .bytes = experiment.bytes, .topology = Topology::of(cluster.ranks, cluster.node_of())};
  const std::vector<Candidate> all = candidates(shape, table);
  check_algorithms(experiment, all);
  const Choice selected = select(shape, table);
  const auto wanted = [&](const Choice& choice) {
    if (experiment.selected_only) return choice == selected;
    return experiment.algorithms.empty() || std::find(experiment.algorithms.begin(), experiment.algorithms.end(),
                                                      choice.algorithm) != experiment.algorithms.end();
  };
  std::vector<Trial> trials;
  for (const Candidate& candidate : all) {
    if (!wanted(candidate.choice)) continue;
    Trial trial{.choice = candidate.choice, .selected = candidate.choice == selected};
    trial.ranks = cluster.ranks;
    trial.bytes = experiment.bytes;
    const auto workload = make_workload({.verb = experiment.verb,
                                         .bytes = experiment.bytes,
                                         .choice = candidate.choice,
                                         .calls = experiment.calls,
                                         .every_rank = experiment.every_rank},
                                        cluster, table);
    trial.simulated = workload.has_value();
    trial.outcome = workload ? simulate(*workload, cluster) : outcome_of(candidate.cost, cluster.ranks);
    if (cluster.dead >= 0) trial.loss = spread_of_loss(cluster, experiment.silent_death ? Death::silent : Death::seen);
    trials.push_back(trial);
  }
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial& a, const Trial& b) { return a.outcome.seconds < b.outcome.seconds; });
  return trials;
}

}  // namespace tutti::sim
