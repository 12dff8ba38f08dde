// start_thread.cpp: the limits on threads and processes, as text for errors.
// SPDX-License-Identifier: Apache-2.0
#include "base/start_thread.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <optional>

#include "base/environment.hpp"
#include "base/system_files.hpp"

namespace tutti {
namespace {

// The smallest of the cgroup and those above it.
std::string cgroup_limit() {
  std::optional<std::int64_t> smallest;
  for (const std::string& folder : control_groups("pids").folders) {
    const std::string text = read_system_file(folder + "/pids.max").value_or("");
    const auto limit = parse_integer(std::string_view(text).substr(0, text.find('\n')));
    if (limit && (!smallest || *limit < *smallest)) smallest = limit;
  }
  return smallest ? fmt::format("{}", *smallest) : "none";
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
