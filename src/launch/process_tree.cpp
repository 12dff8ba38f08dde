// process_tree.cpp: walks /proc.
// SPDX-License-Identifier: Apache-2.0
#include "launch/process_tree.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <unordered_map>
#include <utility>

namespace tutti::launch {
namespace {

std::vector<ProcessStatus> all_processes() {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  std::vector<ProcessStatus> found;
  const std::unique_ptr<DIR, Close> folder(opendir("/proc"));
  if (!folder) return found;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (auto status = process_status(std::atoi(entry->d_name))) found.push_back(std::move(*status));
  }
  return found;
}

}  // namespace

std::vector<ProcessStatus> descendants_of(pid_t root) {
  std::unordered_multimap<pid_t, ProcessStatus> by_parent;
  for (ProcessStatus& process : all_processes()) by_parent.emplace(process.parent, std::move(process));
  std::vector<ProcessStatus> tree;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const auto [first, last] = by_parent.equal_range(open.back());
    open.pop_back();
    for (auto it = first; it != last; ++it) {
      open.push_back(it->second.id);
      tree.push_back(std::move(it->second));
    }
    by_parent.erase(first, last);
  }
  return tree;
}

std::size_t signal_descendants(pid_t root, int signal) {
  const std::vector<ProcessStatus> tree = descendants_of(root);
  for (const ProcessStatus& process : tree) {
    if (process.state == 'Z') continue;
    kill(process.id, signal);
    if (process.state == 'T' && signal != SIGKILL && signal != SIGSTOP)
      kill(process.id, SIGCONT);  // or it would not notice
  }
  return tree.size();
}

bool reap_children(const Reaped& reaped) {
  while (true) {
    int status = 0;
    const pid_t id = waitpid(-1, &status, WNOHANG);
    if (id == 0) return true;
    if (id > 0) {
      reaped(id, status);
    } else if (errno != EINTR) {
      return false;  // ECHILD
    }
  }
}

std::vector<ProcessStatus> kill_descendants(const Cgroup& cgroup, TimePoint deadline, const Reaped& reaped) {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  while (reap_children(reaped)) {
    cgroup.kill();
    signal_descendants(getpid(), SIGKILL);
    if (std::chrono::steady_clock::now() > deadline) return descendants_of(getpid());
    const timespec a_moment{.tv_sec = 0, .tv_nsec = 5'000'000};
    sigtimedwait(&child_ended, nullptr, &a_moment);
  }
  return {};
}

}  // namespace tutti::launch
