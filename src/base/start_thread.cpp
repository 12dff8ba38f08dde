// start_thread.cpp: the limits on threads and processes, as text for errors.
// SPDX-License-Identifier: Apache-2.0
#include "base/start_thread.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/environment.hpp"

namespace tutti {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0::/a/b" is how /proc/self/cgroup names cgroup v2, "7:pids:/a/b" how v1's, which counts processes where both are mounted.
std::filesystem::path own_cgroup() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::filesystem::path group = root;
  std::ifstream own("/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {
    const auto path = line.find(":/");
    if (const auto pids = line.find(":pids:"); pids != std::string::npos && path != std::string::npos)
      return root / "pids" / line.substr(path + 2);
    if (line.starts_with("0::/")) group = root / line.substr(4);
  }
  return group;
}

// The smallest of the cgroup and those above it.
std::string cgroup_limit() {
  std::string smallest;
  for (auto group = own_cgroup(); group.string().starts_with("/sys/fs/cgroup"); group = group.parent_path()) {
    const auto limit = parse_integer(first_line(group / "pids.max"));
    const auto known = parse_integer(smallest);
    if (limit && (!known || *limit < *known)) smallest = fmt::format("{}", *limit);
  }
  return smallest.empty() ? "none" : smallest;
}

std::string user_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "none";
  return fmt::format("{}", limit.rlim_cur);
}

}  // namespace

std::string why_not_started(int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case EAGAIN:
      return fmt::format(
          "{}: the limit on processes and threads is reached (of the user, `ulimit -u`: {}; of the cgroup, pids.max: "
          "{}); "
          "raise it, or start fewer ranks, or fewer threads in each (OMP_NUM_THREADS)",
          reason, user_limit(), cgroup_limit());
    case EPERM:
    case ENOSYS:
      return fmt::format(
          "{}: a sandbox refuses clone or clone3; allow both in the container's seccomp profile, or let clone3 fail "
          "with "
          "ENOSYS there, after which the C library uses clone",
          reason);
    case ENOMEM: return fmt::format("{}: the machine, or the cgroup, has no memory left for it", reason);
    default: return reason;
  }
}

}  // namespace tutti
