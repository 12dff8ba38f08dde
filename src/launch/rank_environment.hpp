// rank_environment.hpp: the variables a rank is started with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

// What is decided at the start of a job and passed to its ranks.
struct Placement {
  int ranks_here = 1;
  int first_rank = 0;
  int world_size = 1;
  int nodes = 1;
  int node_rank = 0;
  int threads = 1;  // of each rank
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::string store = {};  // host:port of tuttirun's store; empty: ranks meet at the master's address
  std::string secret = {};
  std::string job = {};
  int restart = 0;  // how often the job has been started, or ranks of it have been replaced, before
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// What tuttirun sets, for all ranks and for one; thread counts only where `environment` leaves them open.
Variables common_variables(const Placement& placement, const RunOptions& options, const Environment& environment);
Variables own_variables(const Placement& placement, int local_rank);

// Whether a variable belongs to a rank of another launcher, which this job's ranks must not use.
bool is_foreign(std::string_view name);

// All of it, as execve wants it: the environment without what is foreign or replaced, then what is set.
std::vector<std::string> common_block(const Environment& environment, const Variables& common);
std::vector<std::string> to_block(const Variables& variables);

}  // namespace tutti::launch
