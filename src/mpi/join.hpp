// join.hpp: the ranks of a job find out that they are ranks of one MPI, and get a backend that uses it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/connector.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"

namespace tutti::mpi {

struct Joining {
  Connector& connector;  // of this job
  const Environment& environment;
  std::optional<int> communicator;  // as InitOptions::mpi_communicator
  const Log& log;
  TimePoint deadline;
};

/// Opens MPI, initialises it unless the program has, and checks that all ranks of the job are in it, with the same library. Every rank calls
/// it; if one cannot join, all throw the same Error, which names the rank and the reason.
BackendFactory join(const Joining& joining);

struct JoiningGroup {
  /// Every member's text, in the order of ranks.
  std::function<std::vector<std::string>(const std::string& own)> exchange{};
  const Environment& environment;
  const Log& log;
  std::vector<int> world_of{};  // of the members
  bool has_all_ranks = false;   // of the job
};

/// The same for the members of one group, in a job that does not use MPI. MPI_Init waits for all ranks of the job: unless the group has them all,
/// MPI must have been initialised before, by the program or by such a group. The backend serves this group, and groups that are made of it.
BackendFactory join_group(const JoiningGroup& joining);

}  // namespace tutti::mpi
