// mpi_presence.hpp: whether this program uses MPI itself, in which case MPI, not Tutti, signs off from the launcher.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tutti::rendezvous {

// True once MPI_Init was called in this process, also after MPI_Finalize. Looks at the libraries that are loaded, also
// at those that a Python module brought in for itself; loads nothing.
bool mpi_was_initialized();

}  // namespace tutti::rendezvous
