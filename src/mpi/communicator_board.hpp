// communicator_board.hpp: meeting on a communicator of an MPI that the program has initialised.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/clock.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "rendezvous/detect.hpp"

namespace tutti::mpi {

struct OnCommunicator {
  int communicator = 0;  // as InitOptions::mpi_communicator
  const Environment& environment;
  const Log& log;
};

/// The ranks of the communicator as those of a job, which meet by a record that rank 0 broadcasts on it. Every rank of the communicator calls it.
/// InvalidArgument if the program has not initialised MPI, Error if MPI fails.
rendezvous::Detected detect_communicator(const OnCommunicator& what);

}  // namespace tutti::mpi
