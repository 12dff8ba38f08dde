// process_tree.hpp: finding and ending everything that descends from this process.
// SPDX-License-Identifier: Apache-2.0
//
// A process that is a subreaper (PR_SET_CHILD_SUBREAPER) adopts whatever its descendants leave behind, daemons with
// sessions of their own, too. So the tree below it is complete, and once it has no child it has no descendant.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <tutti/clock.hpp>

#include "launch/cgroup.hpp"

namespace tutti::launch {

struct ProcessInfo {
  pid_t id = 0;
  pid_t parent = 0;
  char state = '?';  // as in /proc: R, S, D, T, Z, …
  std::string name = {};
};

// "17 (a (strange) name) S 1 …", the content of /proc/17/stat.
ProcessInfo parse_stat(const std::string& text);

// Parents before children, zombies included. Empty where /proc is not to be had.
std::vector<ProcessInfo> descendants_of(pid_t root);

// How many there were.
std::size_t signal_descendants(pid_t root, int signal);

// Told of every child that is reaped.
using Reaped = std::function<void(pid_t id, int status)>;

// Reaps what has ended. Whether there are children left.
bool reap_children(const Reaped& reaped);

// What SIGKILL does not end by then, the kernel does not let go of.
inline constexpr Duration unkillable_after = std::chrono::seconds(10);

// SIGKILL to everything below this process, again and again until nothing is left. SIGCHLD must be blocked. What is still
// there at the deadline (a process that the kernel does not let go of) is returned.
std::vector<ProcessInfo> kill_descendants(const Cgroup& cgroup, TimePoint deadline, const Reaped& reaped);

}  // namespace tutti::launch
