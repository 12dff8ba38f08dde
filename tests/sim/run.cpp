// run.cpp: runs a scenario in a simulated cluster.
// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <memory>

#include "sim_rank.hpp"

namespace tutti::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t steps_max = 20'000'000;
constexpr Duration time_max = 300s;  // no script takes so long: the first missed deadline ends it
constexpr Duration quiet_min = 1s;  // what comes too late comes within this time, unless a fault holds it up for longer

Duration quiet_time(const Scenario& scenario) {
  Duration quiet = quiet_min;
  for (const messages::Fault& fault : scenario.faults) quiet = std::max(quiet, quiet_min + fault.duration);
  return quiet;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::string_view names[outcome_count] = {"pending", "well",     "refused", "Mismatch",
                                                     "Timeout", "PeerLost", "Aborted", "other"};
  return names[static_cast<int>(outcome)];
}

History run(const Scenario& scenario, Breakage breakage) {
  messages::SimulatedCluster cluster(scenario.cluster);
  History history;
  std::vector<std::unique_ptr<SimRank>> ranks;
  for (int rank = 0; rank < cluster.size(); ++rank) {
    ranks.push_back(std::make_unique<SimRank>(SimRank::Surroundings{scenario, cluster, history, breakage}, rank));
    cluster.set_program(rank, [&history, program = ranks.back().get()] { return ++history.steps, program->step(); });
  }
  for (const messages::Fault& fault : scenario.faults) cluster.inject(fault);

  const auto all_done = [&] {
    for (int rank = 0; rank < cluster.size(); ++rank) {
      if (cluster.alive(rank) && !ranks[static_cast<std::size_t>(rank)]->finished()) return false;
    }
    return true;
  };
  cluster.run_until([&] { return all_done() || history.steps > steps_max; }, time_max);
  history.complete = all_done();
  cluster.run_until([&] { return history.steps > steps_max; }, quiet_time(scenario));
  history.out_of_steps = history.steps > steps_max;

  history.elapsed = cluster.elapsed();
  history.trace = cluster.trace();
  for (int rank = 0; rank < cluster.size(); ++rank) history.killed.push_back(!cluster.alive(rank));
  for (Record& record : history.calls) {
    if (record.endings > 0) record.changed_afterwards = record.side->fingerprint() != record.fingerprint;
  }
  ranks.clear();  // those that are still in a call end it here, which nobody counts
  return history;
}

}  // namespace tutti::sim
