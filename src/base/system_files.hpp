// system_files.hpp: the small files of /proc and /sys: their text, and what they say of this boot, of processes, and of control groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// A file's contents, nothing where it cannot be read. Tests make up whole machines with it.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
std::optional<std::string> read_system_file(const std::string& path);

/// The parts of a text between separators, without empty ones.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Tells this start of this machine from any other; empty where it cannot be read.
std::string boot_id();

/// A process as /proc/PID/stat tells of it.
struct ProcessStatus {
  pid_t id = 0;
  pid_t parent = 0;
  char state = '?';  // R, S, D, T, Z, …
  std::string name{};
  int threads = 0;
  std::int64_t cpu_ticks = 0;
  std::uint64_t started_ticks = 0;  // since boot; with its id it names a process for ever
};
/// Nothing where there is no such process, or where it is hidden.
std::optional<ProcessStatus> process_status(pid_t process);
/// When it was started, in ticks since boot; 0: there is no such process.
std::uint64_t start_of_process(pid_t process);
/// "17 (a (strange) name) S 1 …"
std::optional<ProcessStatus> parse_process_status(std::string_view stat);

/// The control groups by which a controller ("memory", "pids") limits this process, as folders that exist here: from the process's own up to
/// the mount point, innermost first. An empty name stands for version 2 alone.
struct ControlGroups {
  int version = 0;  // 0: there is none
  std::vector<std::string> folders{};
};
ControlGroups control_groups(std::string_view controller, const ReadFile& read = read_system_file);

}  // namespace tutti
