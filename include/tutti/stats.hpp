// stats.hpp: what this process's calls have cost so far.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/group.hpp>

namespace tutti {

/// The calls of one verb on one group.
struct CallStats {
  std::string group;  // "world", "ranks 0, 3-7"
  Verb verb = Verb::barrier;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;   // of this rank's arrays: of each call the larger of input and output
  std::uint64_t failed = 0;  // those that raised after they had begun
  Duration busy{};           // from beginning to end, of those that were not over at once
  Duration waited{};         // that threads of the program stood in calls and in wait()
};

/// Of this process since it joined the job, the latest 63 groups of it. Throws InvalidArgument before init() and after finalize().
std::vector<CallStats> stats();
/// Likewise for the job that the group belongs to.
std::vector<CallStats> stats(const Group& group);

/// Writes the latest calls of this process (2048; all of them under TUTTI_TRACE), its counts, its last error and what it waits for into
/// a file, as JSON. Throws Error where that cannot be written.
void dump_calls(const std::string& path);
/// Likewise for the job that the group belongs to.
void dump_calls(const Group& group, const std::string& path);

}  // namespace tutti
