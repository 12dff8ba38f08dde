// cgroup.cpp: cgroup v2, with nothing but files.
// SPDX-License-Identifier: Apache-2.0
#include "launch/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tutti::launch {
namespace {

std::string read_file(const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  while (file) {
    const ssize_t bytes = read(file.get(), part, sizeof(part));
    if (bytes <= 0) break;
    text.append(part, static_cast<std::size_t>(bytes));
  }
  return text;
}

// The next line of `text`, which loses it.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

// "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw": the fourth is what of it is mounted, the fifth where.
std::string find_cgroup_mount(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    std::string_view line = take_line(mountinfo);
    if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
    for (int field = 0; field < 4; ++field) line.remove_prefix(std::min(line.size(), line.find(' ') + 1));
    return std::string(line.substr(0, line.find(' ')));
  }
  return "";
}

std::string find_own_cgroup(std::string_view cgroup) {
  while (!cgroup.empty()) {
    const std::string_view line = take_line(cgroup);
    if (line.starts_with("0::/")) return std::string(line.substr(3));
  }
  return "";
}

Cgroup Cgroup::below_own(std::string_view job) {
  Cgroup result;
  const std::string own = find_own_cgroup(read_file("/proc/self/cgroup"));
  if (own.empty()) return result;
  const std::string mount = find_cgroup_mount(read_file("/proc/self/mountinfo"));
  if (mount.empty()) return result;
  const std::string parent = mount + (own == "/" ? "" : own);
  if (access(parent.c_str(), W_OK) == 0) result.path_ = parent + "/tuttirun-" + std::string(job);
  return result;
}

Cgroup Cgroup::at(std::string path) {
  Cgroup result;
  result.path_ = std::move(path);
  return result;
}

int Cgroup::make() {
  if (path_.empty() || mkdir(path_.c_str(), 0755) != 0) return -1;
  folder_.reset(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Without cgroup.kill (Linux before 5.14) the group would be of no use.
  if (!folder_ || faccessat(folder_.get(), "cgroup.kill", W_OK, 0) != 0) {
    remove();
    return -1;
  }
  return folder_.get();
}

void Cgroup::kill() const {
  if (path_.empty()) return;
  const UniqueFd file(open((path_ + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (file && write(file.get(), "1", 1) != 1) return;  // the process tree does it
}

void Cgroup::remove() const {
  if (!path_.empty()) rmdir(path_.c_str());
}

}  // namespace tutti::launch
