// limits.hpp: how much memory and address space this process may still take.
// SPDX-License-Identifier: Apache-2.0
//
// The smallest of several independent limits counts: the machine's free memory, each control group from this process's
// up to the root (version 1 and 2), and the limits of the shell. The kernel kills a process that exceeds the limit of a
// control group. The limits are therefore read before memory is allocated.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::shm {

/// A file's contents, nothing where it cannot be read. Tests make up whole machines with it.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
std::optional<std::string> read_system_file(const std::string& path);

/// A number of bytes, and the limit that it comes from.
struct Allowance {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  std::string source = "no limit";
};

/// Memory that can be committed safely: the minimum of MemAvailable and of what the control groups leave. Page cache
/// that a control group can drop counts as free.
Allowance memory_left(const ReadFile& read = read_system_file);
/// RAM, used or not.
std::uint64_t memory_of_machine(const ReadFile& read = read_system_file);
/// Address space that this process may still map (RLIMIT_AS; `ulimit -v`).
Allowance address_space_left(const ReadFile& read = read_system_file);
/// The largest file it may have (RLIMIT_FSIZE): one byte more is a signal that ends the process, in memory files too.
Allowance file_bytes_max();

// The parts, as pure functions.

/// "MemAvailable:   24109068 kB" of /proc/meminfo, in bytes.
std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view field);

/// The control group that accounts this process's memory, as a folder that exists here: its mount point, and the
/// folders from the process's own up to the mount point, innermost first.
struct MemoryGroups {
  int version = 0;  // 0: there is none
  std::vector<std::string> folders{};
};
MemoryGroups find_memory_groups(std::string_view proc_self_cgroup, std::string_view proc_self_mountinfo);

}  // namespace tutti::shm
