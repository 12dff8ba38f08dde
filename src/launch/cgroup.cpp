// cgroup.cpp: cgroup v2, with nothing but files.
// SPDX-License-Identifier: Apache-2.0
#include "launch/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/system_files.hpp"

namespace tutti::launch {

Cgroup Cgroup::below_own(std::string_view job) {
  Cgroup result;
  const ControlGroups own = control_groups("");
  if (own.folders.empty()) return result;
  const std::string& parent = own.folders.front();
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
