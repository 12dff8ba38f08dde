// limits.hpp: how much memory and address space this process may still take.
// SPDX-License-Identifier: Apache-2.0
//
// The smallest of several independent limits counts: the machine's free memory, each control group from this process's
// up to the root (version 1 and 2), and the limits of the shell. The kernel kills a process that exceeds the limit of a
// control group. The limits are therefore read before memory is allocated.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/system_files.hpp"

namespace tutti::shm {

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

/// "MemAvailable:   24109068 kB" of /proc/meminfo, in bytes.
std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view field);

}  // namespace tutti::shm
