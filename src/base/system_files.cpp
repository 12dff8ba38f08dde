// system_files.cpp: reads and takes apart what the system says in small files.
// SPDX-License-Identifier: Apache-2.0
#include "base/system_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/environment.hpp"

namespace tutti {
namespace {

bool lists(std::string_view names, std::string_view name) { return std::ranges::count(split(names, ','), name) > 0; }

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

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string boot_id() {
  std::string id = read_system_file("/proc/sys/kernel/random/boot_id").value_or("");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::optional<ProcessStatus> process_status(pid_t process) {
  return parse_process_status(read_system_file(fmt::format("/proc/{}/stat", process)).value_or(""));
}

std::uint64_t start_of_process(pid_t process) {
  const auto status = process_status(process);
  return status ? status->started_ticks : 0;
}

// The name may hold anything, parentheses and spaces included; what follows the last parenthesis does not.
std::optional<ProcessStatus> parse_process_status(std::string_view stat) {
  const std::size_t name_begin = stat.find('('), name_end = stat.rfind(')');
  if (name_begin == std::string_view::npos || name_begin == 0 || name_end == std::string_view::npos ||
      name_end < name_begin)
    return std::nullopt;
  const auto fields = split(stat.substr(name_end + 1), ' ');
  constexpr std::size_t first = 3;  // the state is the third field, as proc(5) counts them
  constexpr std::size_t parent = 4, user_ticks = 14, system_ticks = 15, threads = 20, started = 22;
  if (fields.size() <= started - first) return std::nullopt;
  const auto number = [&](std::size_t field) { return parse_integer(fields[field - first]).value_or(0); };
  return ProcessStatus{.id = static_cast<pid_t>(parse_integer(stat.substr(0, name_begin - 1)).value_or(0)),
                       .parent = static_cast<pid_t>(number(parent)),
                       .state = fields[0][0],
                       .name = std::string(stat.substr(name_begin + 1, name_end - name_begin - 1)),
                       .threads = static_cast<int>(number(threads)),
                       .cpu_ticks = number(user_ticks) + number(system_ticks),
                       .started_ticks = static_cast<std::uint64_t>(number(started))};
}

ControlGroups control_groups(std::string_view controller, const ReadFile& read) {
  const std::string own = read("/proc/self/cgroup").value_or(""), mounts = read("/proc/self/mountinfo").value_or("");
  std::optional<std::string_view> first_path, second_path;
  for (const std::string_view line : split(own, '\n')) {  // "4:memory:/path", "0::/path"
    const auto names = line.find(':');
    const auto path = names == std::string_view::npos ? names : line.find(':', names + 1);
    if (path == std::string_view::npos) continue;
    if (line.starts_with("0::")) second_path = line.substr(path + 1);
    if (lists(line.substr(names + 1, path - names - 1), controller)) first_path = line.substr(path + 1);
  }
  // A controller that version 1 has is none of version 2.
  for (const std::string_view line : split(mounts, '\n')) {
    const auto mount = parse_mount(line);
    if (mount && first_path && mount->type == "cgroup" && lists(mount->options, controller)) {
      return {.version = 1, .folders = folders_up(*mount, *first_path)};
    }
  }
  for (const std::string_view line : split(mounts, '\n')) {
    const auto mount = parse_mount(line);
    if (mount && second_path && mount->type == "cgroup2") {
      return {.version = 2, .folders = folders_up(*mount, *second_path)};
    }
  }
  return {};
}

}  // namespace tutti
