// library.hpp: the MPI of this process: which one it is, and opening it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "mpi/plugin/plugin_api.hpp"

namespace tutti::mpi {

/// An MPI that was opened, and the plug-in for its binary interface. Never closed: MPI does not survive that.
struct Library {
  const TuttiMpiPlugin* plugin = nullptr;
  std::string name;     // "Open MPI": of the binary interface
  std::string file;     // "libmpi.so.40"
  std::string version;  // "Open MPI v4.1.4, package: Debian OpenMPI", the first line that the library says
  int standard_major = 0, standard_minor = 0;
};

/// One way to an MPI, and what came of it.
struct Attempt {
  std::string name;     // of the binary interface
  std::string file;     // of the MPI library
  std::string problem;  // empty: it was opened
};

struct Found {
  std::shared_ptr<const Library> library{};  // null: none could be opened
  std::string reason{};                      // why this one: "the program has loaded it"
  std::vector<Attempt> attempts{};           // in the order in which they were made
};

/// The MPI that this process should use: the one that TUTTI_MPI names (openmpi, mpich, impi, abi, or a file), the one that the program has loaded, the
/// one whose launcher started the process, or the first that can be opened. Opens it; calls nothing in it that needs MPI_Init.
Found find_library(const Environment& environment);

/// Every binary interface, and whether its library and its plug-in are there. Opens nothing for good.
std::vector<Attempt> survey(const Environment& environment);

/// "Open MPI (libmpi.so.40): …; MPICH (…): …": for an error, with what to do about it.
std::string describe_problems(const Found& found);

/// Where plug-ins are looked for.
std::vector<std::string> plugin_folders(const Environment& environment);

}  // namespace tutti::mpi
