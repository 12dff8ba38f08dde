// mpi_presence.hpp: whether this program uses MPI itself, in which case MPI, not Tutti, finalizes the launcher's PMI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tutti::rendezvous {

// True once MPI_Init was called in this process, also after MPI_Finalize. Searches the loaded libraries, also those
// that a Python module loaded for itself; loads nothing.
bool mpi_was_initialized();

}  // namespace tutti::rendezvous
