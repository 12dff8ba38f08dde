// ranks_as_processes.hpp: ranks that can be killed: forked from the test before it has any thread or socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <tutti/init.hpp>

namespace tutti::contract {

/// Every rank runs `body` and writes what it returns to a file; the parent collects them. Killed ranks leave nothing.
class RankProcesses {
 public:
  explicit RankProcesses(int size)
      : folder_(std::filesystem::temp_directory_path() / fmt::format("tutti-ranks-{}", getpid())) {
    std::filesystem::create_directory(folder_);
    pids_.resize(static_cast<std::size_t>(size));
  }
  ~RankProcesses() {
    for (const pid_t pid : pids_) {
      if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
    }
    std::filesystem::remove_all(folder_);
  }

  void start(const std::function<std::string(Group&)>& body) {
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      const pid_t pid = fork();
      if (pid == 0) run_rank(static_cast<int>(rank), body);
      pids_[rank] = pid;
    }
  }
  void kill(int rank) { signal(rank, SIGKILL); }
  void signal(int rank, int number) { ::kill(pids_[static_cast<std::size_t>(rank)], number); }
  /// In a rank: writes the file "WHAT.RANK", for wait_for_file().
  void note(std::string_view what, int rank) const { std::ofstream(folder_ / fmt::format("{}.{}", what, rank)) << ""; }
  /// Waits until a rank has written a file called `name` into the common folder.
  bool wait_for_file(const std::string& name, std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!std::filesystem::exists(folder_ / name)) {
      if (std::chrono::steady_clock::now() > end) return false;
      usleep(1000);
    }
    return true;
  }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  /// What each rank returned; empty for one that was killed or is not done by the limit.
  std::vector<std::string> collect(std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (pid_t& pid : pids_) {
      while (pid > 0 && ::waitpid(pid, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < end) usleep(1000);
      if (::kill(pid, 0) != 0) pid = 0;
    }
    std::vector<std::string> results;
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      std::ifstream file(folder_ / fmt::format("result.{}", rank));
      results.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return results;
  }

 private:
  [[noreturn]] void run_rank(int rank, const std::function<std::string(Group&)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TUTTI_SECRET", std::string(64, 'b').c_str(), 1);
    std::string result;
    try {
      Group world = init(InitOptions{.init_method = "file://" + (folder_ / "meeting").string(),
                                     .rank = rank,
                                     .size = static_cast<int>(pids_.size()),
                                     .timeout = std::chrono::seconds(20)});
      result = body(world);
    } catch (const std::exception& error) {
      result = std::string("init: ") + error.what();
    }
    std::ofstream(folder_ / fmt::format("result.{}", rank)) << result;
    _exit(0);
  }

  std::filesystem::path folder_;
  std::vector<pid_t> pids_;
};

}  // namespace tutti::contract
