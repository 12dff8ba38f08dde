// made_fd.cpp: why a descriptor was not made.
// SPDX-License-Identifier: Apache-2.0
#include "base/made_fd.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

namespace tutti {

std::string describe_system_error(int error) {
  std::string text = std::generic_category().message(error);
  if (error == ENFILE) return text + ": the machine is out of file descriptors (/proc/sys/fs/file-max)";
  rlimit limit{};
  if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return text;
  return fmt::format(
      "{}: process {} is out of file descriptors, of which it may have {}; close some, or raise the limit (ulimit -n)",
      text, getpid(), limit.rlim_cur);
}

UniqueFd made(int fd, std::string_view what) {
  if (fd >= 0) return UniqueFd(fd);
  const int error = errno;
  const bool is_refused = error == EPERM || error == EACCES || error == ENOSYS;
  throw Error(fmt::format(
      "cannot make {}: {}{}", what, describe_system_error(error),
      is_refused ? ": a sandbox refuses the system call; allow it in the container's seccomp profile" : ""));
}

}  // namespace tutti
