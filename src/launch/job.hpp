// job.hpp: supervises the ranks of one job from their start to the last line of output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/crew.hpp"
#include "launch/options.hpp"
#include "launch/spawn.hpp"

namespace tutti::launch {

class HostWatch;

struct JobPlan {
  std::string name = {};  // of this program, for messages
  RunOptions options = {};
  int ranks = 1;  // supervised here
  int first_rank = 0;
  int world_size = 1;
  std::vector<std::string> hosts = {};  // per rank; empty: all are here
  InheritedSignals signals = {};
  std::optional<TimePoint> deadline = {};  // of --timeout, which counts from the first start
  HostWatch* absent_hosts = nullptr;       // ends the job, to be started with them, when one is back
  bool continues_logs = false;             // the files of --log-dir have the output of an earlier start
};

struct JobEnd {
  int status = 0;           // tuttirun's exit status
  bool is_failure = false;  // a rank or a host failed by itself: another start may go better
  bool may_grow = false;    // a host is back
};

// Starts the crew and supervises it to its end. All signals must be blocked.
JobEnd run_job(const JobPlan& plan, Crew& crew);

std::optional<TimePoint> deadline_of(const RunOptions& options);

}  // namespace tutti::launch
