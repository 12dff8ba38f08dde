// limits.cpp: reads the limits of memory from /proc, the control groups and the shell.
// SPDX-License-Identifier: Apache-2.0
#include "shm/limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace tutti::shm {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool lists(std::string_view names, std::string_view name) { return std::ranges::count(split(names, ','), name) > 0; }

// The number a text begins with, after blanks.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end == text.begin()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const ReadFile& read, const std::string& path) {
  const auto text = read(path);
  return text ? leading_number(*text) : std::nullopt;  // "max" is no number
}

// The field of memory.stat, 0 where it is missing.
std::uint64_t statistic(std::string_view stat, std::string_view field) {
  for (const std::string_view line : split(stat, '\n')) {
    if (line.starts_with(field) && line.substr(field.size()).starts_with(' ')) {
      return leading_number(line.substr(field.size())).value_or(0);
    }
  }
  return 0;
}

// What one control group leaves; nothing where it has no limit.
std::optional<std::uint64_t> left_in(const ReadFile& read, const std::string& folder, int version) {
  const bool second = version == 2;
  // memory.high does not kill, but above it every allocation is slowed down to a crawl.
  const std::uint64_t limit =
      std::min(number_in(read, folder + (second ? "/memory.max" : "/memory.limit_in_bytes")).value_or(unlimited),
               second ? number_in(read, folder + "/memory.high").value_or(unlimited) : unlimited);
  if (limit > unlimited / 4) return std::nullopt;  // version 1 says "none" with a number near 2^63
  const std::uint64_t use =
      number_in(read, folder + (second ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  const std::uint64_t droppable =
      statistic(read(folder + "/memory.stat").value_or(""), second ? "inactive_file" : "total_inactive_file");
  const std::uint64_t needed = use - std::min(use, droppable);
  return limit - std::min(limit, needed);
}

struct Mount {
  std::string_view root, point, type, options;
};

// "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - tmpfs tmpfs rw,mode=755": the optional fields end with "-".
std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = split(line, ' ');
  const auto dash = std::ranges::find(fields, std::string_view("-"));
  if (fields.size() < 6 || fields.end() - dash < 4) return std::nullopt;
  return Mount{.root = fields[3], .point = fields[4], .type = dash[1], .options = dash[3]};
}

// The folders from `path` up to the mount point. A path outside of what is mounted (a container that sees only its own
// group, at the mount point) begins at the mount point.
std::vector<std::string> folders_up(const Mount& mount, std::string_view path) {
  if (mount.root != "/" && path.starts_with(mount.root)) path.remove_prefix(mount.root.size());
  if (path.starts_with("/..") || (mount.root != "/" && !path.empty() && path.front() != '/')) path = "";
  while (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string> folders;
  while (!path.empty()) {
    folders.push_back(std::string(mount.point).append(path));
    path = path.substr(0, path.rfind('/'));
  }
  folders.emplace_back(mount.point);
  return folders;
}

}  // namespace

std::optional<std::string> read_system_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  return text;
}

std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view field) {
  for (const std::string_view line : split(meminfo, '\n')) {
    if (line.starts_with(field) && line.substr(field.size()).starts_with(':')) {
      const auto kib = leading_number(line.substr(field.size() + 1));
      if (kib) return *kib * 1024;
    }
  }
  return std::nullopt;
}

MemoryGroups find_memory_groups(std::string_view proc_self_cgroup, std::string_view proc_self_mountinfo) {
  std::optional<std::string_view> first_path, second_path;
  for (const std::string_view line : split(proc_self_cgroup, '\n')) {  // "4:memory:/path", "0::/path"
    const auto names = line.find(':');
    const auto path = names == std::string_view::npos ? names : line.find(':', names + 1);
    if (path == std::string_view::npos) continue;
    if (line.starts_with("0::")) second_path = line.substr(path + 1);
    if (lists(line.substr(names + 1, path - names - 1), "memory")) first_path = line.substr(path + 1);
  }
  // A memory controller of version 1 leaves none for version 2.
  for (const std::string_view line : split(proc_self_mountinfo, '\n')) {
    const auto mount = parse_mount(line);
    if (mount && first_path && mount->type == "cgroup" && lists(mount->options, "memory")) {
      return {.version = 1, .folders = folders_up(*mount, *first_path)};
    }
  }
  for (const std::string_view line : split(proc_self_mountinfo, '\n')) {
    const auto mount = parse_mount(line);
    if (mount && second_path && mount->type == "cgroup2") {
      return {.version = 2, .folders = folders_up(*mount, *second_path)};
    }
  }
  return {};
}

Allowance memory_left(const ReadFile& read) {
  Allowance least;
  const auto consider = [&](std::optional<std::uint64_t> bytes, std::string source) {
    if (bytes && *bytes < least.bytes) least = {.bytes = *bytes, .source = std::move(source)};
  };
  consider(meminfo_bytes(read("/proc/meminfo").value_or(""), "MemAvailable"), "the machine's free memory");
  const MemoryGroups groups =
      find_memory_groups(read("/proc/self/cgroup").value_or(""), read("/proc/self/mountinfo").value_or(""));
  for (const std::string& folder : groups.folders) {
    consider(left_in(read, folder, groups.version), fmt::format("the control group {}", folder));
  }
  return least;
}

std::uint64_t memory_of_machine(const ReadFile& read) {
  const auto total = meminfo_bytes(read("/proc/meminfo").value_or(""), "MemTotal");
  if (total) return *total;
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Allowance address_space_left(const ReadFile& read) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const auto pages = leading_number(read("/proc/self/statm").value_or("")).value_or(0);
  const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {.bytes = limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used),
          .source = "the limit of address space (ulimit -v)"};
}

Allowance file_bytes_max() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return {.bytes = limit.rlim_cur, .source = "the limit of file sizes (ulimit -f)"};
}

}  // namespace tutti::shm
