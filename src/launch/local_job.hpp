// local_job.hpp: a job whose ranks run on this host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "base/environment.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

struct LocalJob {
  std::string_view name;  // of this program, for messages
  const RunOptions& options;
  const Environment& environment;
  std::span<char> title;  // the memory in which this process's arguments lie
  int input = -1;         // what rank 0 reads
};

// Runs it, with its restarts, and returns tuttirun's exit status.
int run_here(const LocalJob& job);

}  // namespace tutti::launch
