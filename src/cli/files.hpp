// files.hpp: the small files of /proc and /sys, and what cgroups say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::cli {

/// The whole file, without white space at its end; nothing if it cannot be read.
std::optional<std::string> read_text(const std::filesystem::path& path);

/// "MemTotal:   49152 kB" → 49152; nothing where the key or a number is missing.
std::optional<std::int64_t> field(std::string_view text, std::string_view key);

struct CgroupLimits {
  std::optional<std::int64_t> memory_limit{}, memory_used{};  // bytes
  std::optional<double> cpu_quota{};                          // threads' worth of time
};
/// The tightest of this process's group and those above it; both versions of cgroups.
CgroupLimits read_cgroup_limits(const std::filesystem::path& root);

}  // namespace tutti::cli
