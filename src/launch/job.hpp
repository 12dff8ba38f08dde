// job.hpp: supervises the ranks of one job from their start to the last line of output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/crew.hpp"
#include "launch/options.hpp"
#include "launch/spawn.hpp"

namespace tutti::launch {

struct JobPlan {
  std::string name = {};  // of this program, for messages
  RunOptions options = {};
  int ranks = 1;  // supervised here
  int first_rank = 0;
  int world_size = 1;
  std::vector<std::string> hosts = {};  // per rank; empty: all are here
  InheritedSignals signals = {};
};

// Starts the crew, supervises it and returns tuttirun's exit status. All signals must be blocked.
int run_job(const JobPlan& plan, Crew& crew);

}  // namespace tutti::launch
