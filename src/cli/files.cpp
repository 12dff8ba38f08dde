// files.cpp: the small files of /proc and /sys, and what cgroups say.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/environment.hpp"

namespace tutti::cli {

namespace {

using Path = std::filesystem::path;

// Version 1 says "no limit" by a number near the end of the address space.
constexpr std::int64_t no_limit_v1 = std::int64_t{1} << 62;

template <class Number>
void keep_smaller(std::optional<Number>& kept, std::optional<Number> seen) {
  if (seen && (!kept || *seen < *kept)) kept = seen;
}

std::optional<std::int64_t> read_number(const Path& path) {
  const auto text = read_text(path);
  return text ? parse_integer(*text) : std::nullopt;
}

// "200000 100000" or "max 100000".
std::optional<double> read_quota_v2(const Path& path) {
  std::istringstream words(read_text(path).value_or(""));
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> read_quota_v1(const Path& folder) {
  const auto quota = read_number(folder / "cpu.cfs_quota_us"), period = read_number(folder / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// In a container the path of the group is often that of the host, and not there: its parents up to the mount are.
template <class Visit>
void for_each_group(const Path& mount, std::string_view group, Visit visit) {
  for (Path path = Path(group).relative_path();; path = path.parent_path()) {
    visit(mount / path);
    if (path.empty()) return;
  }
}

void read_v2(const Path& mount, std::string_view group, CgroupLimits& limits) {
  for_each_group(mount, group, [&](const Path& folder) {
    keep_smaller(limits.cpu_quota, read_quota_v2(folder / "cpu.max"));
    const auto limit = read_number(folder / "memory.max");
    if (!limit || (limits.memory_limit && *limits.memory_limit <= *limit)) return;
    limits.memory_limit = limit;
    limits.memory_used = read_number(folder / "memory.current");
  });
}

void read_memory_v1(const Path& mount, std::string_view group, CgroupLimits& limits) {
  for_each_group(mount, group, [&](const Path& folder) {
    const auto limit = read_number(folder / "memory.limit_in_bytes");
    if (!limit || *limit >= no_limit_v1 || (limits.memory_limit && *limits.memory_limit <= *limit)) return;
    limits.memory_limit = limit;
    limits.memory_used = read_number(folder / "memory.usage_in_bytes");
  });
}

}  // namespace

std::optional<std::string> read_text(const Path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  text.erase(text.find_last_not_of(" \n\t") + 1);
  return text;
}

std::optional<std::int64_t> field(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key) || line.substr(key.size()).substr(0, 1) != ":") continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789", key.size()), line.size()));
    return parse_integer(line.substr(0, line.find_first_not_of("0123456789")));
  }
  return std::nullopt;
}

CgroupLimits read_cgroup_limits(const Path& root) {
  const Path mount = root / "sys/fs/cgroup";
  CgroupLimits limits;
  std::istringstream lines(read_text(root / "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/group", and "0::/group" for version 2
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view group = std::string_view(line).substr(second + 1);
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    if (controllers == ",,") {
      read_v2(mount, group, limits);
      read_v2(mount / "unified", group, limits);
    }
    if (controllers.find(",memory,") != std::string::npos) read_memory_v1(mount / "memory", group, limits);
    if (controllers.find(",cpu,") == std::string::npos) continue;
    for_each_group(mount / "cpu", group,
                   [&](const Path& folder) { keep_smaller(limits.cpu_quota, read_quota_v1(folder)); });
  }
  return limits;
}

}  // namespace tutti::cli
