// rank_lives.hpp: ranks as processes whose endings matter: each has a status, and none may need to be stopped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <tutti/init.hpp>

namespace tutti::contract {

// Statuses of children that found something wrong, and of what the harness saw.
inline constexpr int wrong_status = 99, hung_status = -1;

/// The ranks of one job, each a process that runs `body` and ends by exit(), with its world still in main's hands: what `body` returns is
/// the status.
class RankLives {
 public:
  explicit RankLives(int size)
      : size_(size), folder_(std::filesystem::temp_directory_path() / fmt::format("tutti-lives-{}", getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~RankLives() { std::filesystem::remove_all(folder_); }
  RankLives(const RankLives&) = delete;
  RankLives& operator=(const RankLives&) = delete;

  /// Exit statuses; 128 + the signal for a rank that died of one, hung_status for one that had to be stopped.
  std::vector<int> run(const std::function<int(Group&)>& body) {
    std::fflush(nullptr);
    std::vector<pid_t> processes;
    for (int rank = 0; rank < size_; ++rank) {
      processes.push_back(fork());
      if (processes.back() == 0) live(rank, body);
    }
    std::vector<int> statuses;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    for (const pid_t process : processes) statuses.push_back(status_of(process, end));
    return statuses;
  }

  /// How this process's child ended; what it left undone shows as hung_status.
  static int status_of(pid_t process, std::chrono::steady_clock::time_point end) {
    int status = 0;
    while (::waitpid(process, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ::kill(process, SIGKILL);
        ::waitpid(process, &status, 0);
        return hung_status;
      }
      usleep(1000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static int status_of(pid_t process) {
    return status_of(process, std::chrono::steady_clock::now() + std::chrono::seconds(40));
  }

  /// Ranks tell each other beside the job how far they are.
  void mark(const std::string& name) const { std::ofstream(folder_ / name) << "here"; }
  void wait_for(const std::string& name) const {
    while (!std::filesystem::exists(folder_ / name)) usleep(1000);  // the job has its deadline
  }

 private:
  [[noreturn]] void live(int rank, const std::function<int(Group&)>& body) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TUTTI_SECRET", std::string(64, 'b').c_str(), 1);
    int status = wrong_status;
    try {
      static Group* world = nullptr;  // as a program's own: exit() does not destroy it
      world = new Group(init(InitOptions{.init_method = "file://" + (folder_ / "meeting").string(),
                                         .rank = rank,
                                         .size = size_,
                                         .timeout = std::chrono::seconds(60)}));
      status = body(*world);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    }
    std::exit(status);
  }

  int size_;
  std::filesystem::path folder_;
};

}  // namespace tutti::contract
