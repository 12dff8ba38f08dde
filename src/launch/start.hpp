// start.hpp: turns a job's plan into what the guard needs to start its ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include "launch/guard.hpp"
#include "launch/job.hpp"
#include "launch/rank_output.hpp"

namespace tutti::launch {

RankOutputOptions output_options(const JobPlan& plan);

// Raises the limit on descriptors, because the pipes of all ranks are open at once. What it was, for the ranks.
rlimit make_room_for_pipes(int ranks);

// Starts the guard, which starts the ranks.
Guard start_guard(const JobPlan& plan, const RankOutput& output, const Cgroup& cgroup);

}  // namespace tutti::launch
