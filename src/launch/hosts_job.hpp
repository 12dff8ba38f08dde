// hosts_job.hpp: a job on the hosts that -H or --hostfile lists.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/environment.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

struct HostsJob {
  std::string_view name;  // of this program, for messages
  const RunOptions& options;
  const Environment& environment;
  int input = -1;  // what rank 0 reads
};

// Prepares the hosts, runs the job with its restarts and returns tuttirun's exit status. Throws UsageError that names the host.
int run_on_hosts(const HostsJob& job);

// --dry-run: the hosts and the commands that would start their agents.
std::string describe_hosts(const RunOptions& options);

// Whether a variable says something about this host or this login, and means nothing on another.
bool belongs_to_host(std::string_view variable);

}  // namespace tutti::launch
