// process_tree.cpp: walks /proc.
// SPDX-License-Identifier: Apache-2.0
#include "launch/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <unordered_map>

#include "base/unique_fd.hpp"

namespace tutti::launch {
namespace {

std::vector<ProcessInfo> all_processes() {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  std::vector<ProcessInfo> found;
  const std::unique_ptr<DIR, Close> folder(opendir("/proc"));
  if (!folder) return found;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const std::string path = std::string(entry->d_name) + "/stat";
    const UniqueFd file(openat(dirfd(folder.get()), path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) continue;  // it has ended meanwhile
    char text[512];
    const ssize_t bytes = read(file.get(), text, sizeof(text));
    if (bytes > 0) found.push_back(parse_stat(std::string(text, static_cast<std::size_t>(bytes))));
  }
  return found;
}

}  // namespace

ProcessInfo parse_stat(const std::string& text) {
  // The name may hold anything, parentheses and spaces included; what follows the last parenthesis does not.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open || close + 4 > text.size()) return {};
  return {.id = std::atoi(text.c_str()),
          .parent = std::atoi(text.c_str() + close + 4),
          .state = text[close + 2],
          .name = text.substr(open + 1, close - open - 1)};
}

std::vector<ProcessInfo> descendants_of(pid_t root) {
  std::unordered_multimap<pid_t, ProcessInfo> by_parent;
  for (ProcessInfo& process : all_processes()) by_parent.emplace(process.parent, std::move(process));
  std::vector<ProcessInfo> tree;
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
  const std::vector<ProcessInfo> tree = descendants_of(root);
  for (const ProcessInfo& process : tree) {
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

std::vector<ProcessInfo> kill_descendants(const Cgroup& cgroup, TimePoint deadline, const Reaped& reaped) {
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
