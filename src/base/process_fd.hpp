// process_fd.hpp: a file descriptor that forked children do not keep: what O_CLOFORK would be, if Linux had it.
// SPDX-License-Identifier: Apache-2.0
//
// A thread may fork while others are anywhere, so a child cannot walk through what it inherited to find its parent's sockets: lists may be
// half changed, and locks held by threads that it does not have. A bit for each descriptor tells which to close. What the child still
// holds of them closes nothing more.
#pragma once

#include <utility>

#include "base/unique_fd.hpp"

namespace tutti {

class ProcessFd {
 public:
  ProcessFd() = default;
  explicit(false) ProcessFd(UniqueFd fd) : fd_(fd.release()) { note(); }
  ProcessFd(ProcessFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ProcessFd& operator=(ProcessFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~ProcessFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// From now on children keep it, too.
  [[nodiscard]] UniqueFd release();
  /// Keeps errno.
  void reset();

  /// In a forked child, whatever its parent's threads were doing: closes its copies of them all.
  static void close_in_child();

 private:
  void note() const;

  int fd_ = -1;
};

}  // namespace tutti
