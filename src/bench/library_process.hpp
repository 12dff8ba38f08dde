// library_process.hpp: a process of a job under measurement, in a session of its own; it ends with its owner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace tutti::bench {

struct ProcessStart {
  std::vector<std::string> arguments{};                            // the program first; found in PATH
  std::vector<std::pair<std::string, std::string>> environment{};  // beside what this process has
  std::string log_path{};                                          // what it prints is added there
};

class LibraryProcess {
 public:
  explicit LibraryProcess(const ProcessStart& start);
  LibraryProcess(LibraryProcess&& other) noexcept;
  LibraryProcess& operator=(LibraryProcess&&) = delete;
  /// Gives it a moment to end by itself, then ends its whole process group.
  ~LibraryProcess();
  /// Becomes readable when it has ended.
  [[nodiscard]] int fd() const { return pid_fd_.get(); }

 private:
  bool ends_within(int milliseconds);
  pid_t pid_ = -1;
  UniqueFd pid_fd_{};
};

/// The file that `name` means in PATH; empty if there is none.
std::string find_program(const std::string& name);

}  // namespace tutti::bench
