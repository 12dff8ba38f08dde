// probes.hpp: small probes, one per kind of fact. Each looks at one thing and never throws: what it cannot find out is
// part of the facts. Files are read below `root`, so that a test can make up a machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "base/environment.hpp"
#include "cli/facts.hpp"

namespace tutti::cli {

using Path = std::filesystem::path;

BuildFacts probe_build();
MachineFacts probe_machine(const Path& root);
MemoryFacts probe_memory(const Path& root);
/// Makes a memfd as the library would, and looks at /dev/shm.
SharedMemoryFacts probe_shared_memory(const Path& root);
/// Really reads the memory of a child that is made for it.
CrossMemoryFacts probe_cross_memory(const Path& root);
ClockFacts probe_clock(const Path& root);
NetworkFacts probe_network(const Environment& environment);
/// Asks the active Python for versions, in one process and without importing the frameworks.
PythonFacts probe_python(const Environment& environment);
LauncherFacts probe_launcher(const Environment& environment);
TableFacts probe_table(const Environment& environment);

/// One row per backend, in the order in which they are shown.
struct BackendRow {
  const char* name;
  BackendFacts (*probe)(const Facts& others, const Environment& environment);
};
std::vector<BackendFacts> probe_backends(const Facts& others, const Environment& environment);

Facts probe_all(const Environment& environment);

}  // namespace tutti::cli
