// contract_ranks.cpp: the contract's cases with ranks that are processes: started once per number of ranks.
// SPDX-License-Identifier: Apache-2.0
//
//   contract_ranks SIZE [CASES]   starts SIZE ranks of itself, which meet by env:// and run the same list of cases
//
// The parent waits for them up to a deadline and ends those that are left, by their process ids. Ranks end with their parent.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <tutti/init.hpp>

#include "case_grid.hpp"
#include "wire/secret.hpp"
#include "wire/socket.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tutti;

constexpr auto deadline_for_all = 90s;
constexpr std::int64_t lengths[] = {0, 1, 7, 1000, 20011};
constexpr std::int64_t small_lengths[] = {0, 1, 7};

/// The whole life of one rank; its exit code.
int be_a_rank(int case_count) {
  int failures = 0;
  const auto fail = [&](const std::string& text) {
    ++failures;
    std::cerr << text << "\nreplay with TUTTI_SEED=" << contract::seed_of_run() << std::endl;
  };
  try {
    Group world = init({.timeout = 60s});
    contract::run_calls(world, contract::every_call(small_lengths, contract::seed_of_run()), fail);
    contract::run_calls(world, contract::some_calls(case_count, lengths, contract::seed_of_run()), fail);
    world.barrier();
    finalize();
  } catch (const std::exception& error) {
    fail(fmt::format("rank {} threw: {}", std::getenv("RANK"), error.what()));
  }
  return failures == 0 ? 0 : 1;
}

std::uint16_t free_port() { return wire::Listener(wire::Address::loopback()).address().port(); }

sigset_t set_of_child_ended() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return set;
}

pid_t start_rank(const char* program, int rank, const std::map<std::string, std::string>& environment,
                 const std::string& cases) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it was gone before we asked to go with it
  const sigset_t child_ended = set_of_child_ended();
  sigprocmask(SIG_UNBLOCK, &child_ended, nullptr);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  execl(program, program, "rank", cases.c_str(), nullptr);
  _exit(127);
}

/// Waits for all; ends those that are left at the deadline, or once one has failed and the others had time to notice.
int wait_for(std::vector<pid_t> ranks) {
  int result = 0;
  auto limit = std::chrono::steady_clock::now() + deadline_for_all;
  while (!ranks.empty()) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      std::erase(ranks, ended);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      std::cerr << "process " << ended << " ended with status " << status << std::endl;
      result = 1;
      limit = std::min(limit, std::chrono::steady_clock::now() + 15s);
    } else if (std::chrono::steady_clock::now() > limit) {
      std::cerr << ranks.size() << " ranks have not ended in time" << std::endl;
      for (const pid_t pid : ranks) kill(pid, SIGKILL);
      for (const pid_t pid : ranks) waitpid(pid, nullptr, 0);
      return 1;
    } else {
      const timespec a_second{.tv_sec = 1, .tv_nsec = 0};
      const sigset_t child_ended = set_of_child_ended();
      sigtimedwait(&child_ended, nullptr, &a_second);  // one that ended since we looked is still noted
    }
  }
  return result;
}

int be_the_parent(const char* program, int size, const std::string& cases) {
  std::array<std::byte, wire::Secret::size_bytes> random{};
  wire::fill_random(random);
  const std::map<std::string, std::string> environment = {{"WORLD_SIZE", std::to_string(size)},
                                                          {"LOCAL_WORLD_SIZE", std::to_string(size)},
                                                          {"MASTER_ADDR", "127.0.0.1"},
                                                          {"MASTER_PORT", std::to_string(free_port())},
                                                          {"TUTTI_SECRET", wire::Secret(random).hex()},
                                                          {"TUTTI_SEED", std::to_string(contract::seed_of_run())}};
  const sigset_t child_ended = set_of_child_ended();
  sigprocmask(SIG_BLOCK, &child_ended, nullptr);  // waited for, not interrupted by
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(start_rank(program, rank, environment, cases));
  return wait_for(std::move(ranks));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const std::string cases = argc > 2 ? argv[2] : "300";
  if (first == "rank") return be_a_rank(contract::lot(std::atoi(cases.c_str())));
  const int size = std::atoi(first.c_str());
  if (size < 1) {
    std::cerr << "usage: contract_ranks SIZE [CASES]\n";
    return 2;
  }
  return be_the_parent("/proc/self/exe", size, cases);
}
