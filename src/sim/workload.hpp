// workload.hpp: the programs of all ranks for one call.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that do the same share a program. Where all ranks do the same (*rotating* plans: the plan of rank r is that of
// rank 0 with every peer r further), only that of rank 0 is made. If the hosts are alike, too, then rank r and the rank
// at the same place of another host do the same things at the same times, so that the ranks of one host stand for all:
// `period` ranks are simulated, and rank r stands for r + period, r + 2 period, …
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/select.hpp"
#include "sim/cluster.hpp"
#include "sim/program.hpp"

namespace tutti::sim {

struct Workload {
  int ranks = 1;
  int period = 1;  // ranks that are simulated
  int calls = 1;   // one after the other
  std::vector<Program> programs;
  std::vector<std::uint32_t> program_of;  // per simulated rank
  [[nodiscard]] const Program& of(int rank) const { return programs[program_of[static_cast<std::size_t>(rank)]]; }
  [[nodiscard]] std::int64_t task_count() const;
};

struct Traffic {
  std::int64_t messages = 0;                       // of all ranks
  std::int64_t rank_messages = 0, rank_bytes = 0;  // sent by the busiest rank
};
Traffic traffic_of(const Workload& workload);

/// What is simulated: one call by one algorithm.
struct Question {
  Verb verb = Verb::all_reduce;
  std::int64_t bytes = 0;  // of the whole array, all blocks together
  std::int64_t element_bytes = 4;
  Choice choice{};
  int calls = 1;                     // one after the other
  bool every_rank = false;           // also where one host could stand for all
  std::int64_t tasks_max = 1 << 27;  // what would take more is not simulated
};

/// The spec of rank 0. Elements are rounded up, so that no rank is left without; calls that change an array are in place.
Spec spec_of(const Question& question, const Cluster& cluster);

/// Whether plans rotate. workload_test compares all that say so with the plans of all ranks.
bool rotates(const Spec& spec);

/// Nothing if there would be more than tasks_max tasks.
std::optional<Workload> make_workload(const Question& question, const Cluster& cluster, const Table& table);

}  // namespace tutti::sim
