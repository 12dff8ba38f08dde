// communicator_board.hpp: meeting on a communicator of an MPI that the program has initialised.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <tutti/clock.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "rendezvous/detect.hpp"

namespace tutti::mpi {

struct OnCommunicator {
  /// As InitOptions::mpi_communicator. None: MPI_COMM_WORLD, and MPI is initialised if need be.
  std::optional<int> communicator{};
  int size = 0;  // how many ranks the launcher has started; 0: nobody knows
  const Environment& environment;
  const Log& log;
};

/// The ranks of the communicator as those of a job, which meet by a record that rank 0 broadcasts on it. Every rank of the communicator calls it.
/// InvalidArgument if the program has not initialised MPI, Error if MPI fails.
/// Error where the job is not of this MPI.
rendezvous::Detected detect_communicator(const OnCommunicator& what);

/// Whether the MPI of this process cannot be initialised once PMIx is: Open MPI 5, which takes its rank from a PMIx_Init of its own.
bool must_precede_pmix(const Environment& environment);

}  // namespace tutti::mpi
