// cgroup.hpp: a control group for the job, where this machine permits one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace tutti::launch {

// With cgroup v2, one write ends every process of a group at once, even processes that fork quickly. Where our own
// group is not writable (not delegated), everything here does nothing and the process tree is used instead.
class Cgroup {
 public:
  Cgroup() = default;
  // Only decides where it would be. `job` becomes part of its name.
  static Cgroup below_own(std::string_view job);
  // The same one again, for another process.
  static Cgroup at(std::string path);

  // Makes it. The descriptor, for CLONE_INTO_CGROUP, or -1.
  int make();
  void kill() const;
  void remove() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;  // empty: none
  UniqueFd folder_;
};

}  // namespace tutti::launch
