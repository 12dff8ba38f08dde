// join.hpp: the ranks of a job find out that they are ranks of one MPI, and get a backend that uses it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

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

}  // namespace tutti::mpi
