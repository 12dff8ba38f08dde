// mpirun.hpp: tuttirun -B mpi: the ranks are started by the launcher of the MPI that they use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/program.hpp"

namespace tutti::launch {

/// An MPI's launcher, and what its words mean.
struct MpiLauncher {
  std::string path{};
  bool is_open_mpi = false;  // it wants to be told that there may be more ranks than cores
};

/// The command that starts the ranks. Throws UsageError for options that an mpirun does not have.
std::vector<std::string> mpirun_command(const MpiLauncher& launcher, const RunOptions& options, const Program& program);

/// Looks for the mpirun of the MPI that TUTTI_MPI names, or any, and becomes it. Throws UsageError if there is none.
int start_by_mpirun(const RunOptions& options, const Program& program, const Environment& environment);

}  // namespace tutti::launch
