// process.hpp: what /proc says of a process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tutti::record {

/// When it was started, in the kernel's ticks since boot; 0: there is no such process. With its number it names a process for ever.
std::uint64_t start_of_process(pid_t process);
/// A whole file of /proc; empty if it cannot be read.
std::string read_proc(const std::string& path);

}  // namespace tutti::record
