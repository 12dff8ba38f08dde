// launcher_news.hpp: what the launcher tells this rank of others: that their processes have ended, and how.
// SPDX-License-Identifier: Apache-2.0
//
// tuttirun gives every rank a pipe, TUTTI_LAUNCHER_FD, and writes a line into it for each process of the job that ends:
// "3 c0ffee its process 4711 on b was killed by signal 9". The launcher knows it from the system, at once, on every host.
// The second word is the job: a process that outlives others takes part in one job after the other, and a line about an earlier one
// may still lie in the pipe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"

namespace tutti {

struct LauncherPipe {
  UniqueFd reader{};
  std::string job{};  // as the launcher calls the one that this process is a rank of

  explicit operator bool() const { return static_cast<bool>(reader); }
};

class LauncherNews {
 public:
  /// A descriptor of its own for the launcher's pipe; none without a launcher. Programs that this process starts do not inherit the pipe.
  static LauncherPipe open_pipe(const Environment& environment);

  using Told = std::function<void(int rank, std::string_view how)>;
  /// Lines about other jobs are skipped. `told` is called on a thread that sleeps until the launcher says something.
  LauncherNews(LauncherPipe pipe, Told told);
  LauncherNews(const LauncherNews&) = delete;
  LauncherNews& operator=(const LauncherNews&) = delete;
  ~LauncherNews();

 private:
  void listen();
  void take_lines();

  LauncherPipe pipe_;
  UniqueFd stop_;
  Told told_;
  std::string text_;
  std::thread thread_;
};

}  // namespace tutti
