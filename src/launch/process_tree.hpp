// process_tree.hpp: finds and ends all descendants of this process.
// SPDX-License-Identifier: Apache-2.0
//
// A process that is a subreaper (PR_SET_CHILD_SUBREAPER) adopts whatever its descendants leave behind, daemons with
// sessions of their own, too. So the tree below it is complete, and once it has no child it has no descendant.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

#include <tutti/clock.hpp>

#include "base/system_files.hpp"
#include "launch/cgroup.hpp"

namespace tutti::launch {

// Parents before children, zombies included. Empty where /proc is not to be had.
std::vector<ProcessStatus> descendants_of(pid_t root);

// How many there were.
std::size_t signal_descendants(pid_t root, int signal);

// Told of every child that is reaped.
using Reaped = std::function<void(pid_t id, int status)>;

// Reaps what has ended. Whether there are children left.
bool reap_children(const Reaped& reaped);

// If SIGKILL does not end a process by then, the kernel holds it.
inline constexpr Duration unkillable_after = std::chrono::seconds(10);

// Sends SIGKILL to all descendants, again and again until none is left. SIGCHLD must be blocked. Returns the processes
// that still exist at the deadline (those that the kernel holds).
std::vector<ProcessStatus> kill_descendants(const Cgroup& cgroup, TimePoint deadline, const Reaped& reaped);

}  // namespace tutti::launch
