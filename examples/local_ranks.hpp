// local_ranks.hpp: an example that starts its own ranks, until a launcher does it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace examples {

inline bool under_a_launcher() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "TUTTI_STORE"}) {
    if (getenv(name) != nullptr) return true;
  }
  return false;
}

/// Where the ranks that start_ranks made meet; empty under a launcher, which tells by itself.
inline std::string meeting_point() {
  const char* text = getenv("EXAMPLE_MEETING_POINT");
  return text == nullptr ? "" : text;
}

/// A secret for one run: 32 random bytes in hexadecimal.
inline std::string random_secret() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 8; ++i) text += fmt::format("{:08x}", random());
  return text;
}

[[noreturn]] inline void become_rank(int rank, int size, const std::string& meeting_point, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives this program
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
  setenv("EXAMPLE_MEETING_POINT", meeting_point.c_str(), 1);
  execv("/proc/self/exe", argv);
  _exit(127);
}

/// Runs this program once per rank, as the same command line under RANK and WORLD_SIZE; returns the first failure, or 0.
inline int start_ranks(int size, char** argv) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tutti-example-{}", getpid());
  std::filesystem::create_directory(folder);
  setenv("TUTTI_SECRET", random_secret().c_str(), 1);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) become_rank(rank, size, "file://" + (folder / "meeting").string(), argv);
    ranks.push_back(child);
  }
  int result = 0;
  for (const pid_t rank : ranks) {
    int status = 0;
    waitpid(rank, &status, 0);
    if (result == 0 && status != 0) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::filesystem::remove_all(folder);
  return result;
}

}  // namespace examples
