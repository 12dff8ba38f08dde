// job.hpp: supervises the ranks of one job from their start to the last line of output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/cause.hpp"
#include "launch/guard.hpp"
#include "launch/options.hpp"
#include "launch/printer.hpp"
#include "launch/program.hpp"
#include "launch/rank_output.hpp"

namespace tutti::launch {

struct JobPlan {
  std::string name = {};  // of this program, for messages
  RunOptions options = {};
  Program program = {};
  int ranks = 1;  // here
  int first_rank = 0;
  int world_size = 1;
  std::string id = {};
  std::vector<std::string> common_environment = {};
  std::vector<std::vector<std::string>> own_environment = {};  // per rank
  std::vector<cpu_set_t> processors = {};                      // per rank, or empty
  InheritedSignals signals = {};
  rlimit descriptors = {};     // the limit on them, before it was raised
  std::span<char> title = {};  // the memory in which this process's arguments lie
};

// Runs it and returns tuttirun's exit status. All signals must be blocked, and this process a subreaper.
int run_job(const JobPlan& plan);

}  // namespace tutti::launch
