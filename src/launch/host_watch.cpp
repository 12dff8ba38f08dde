// host_watch.cpp: a remote shell, a pause, the next host.
// SPDX-License-Identifier: Apache-2.0
#include "launch/host_watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/remote_shell.hpp"

namespace tutti::launch {
namespace {

constexpr Duration pause = std::chrono::seconds(2);                 // between two tries
constexpr Duration look_interval = std::chrono::milliseconds(100);  // while one is under way

// Says nothing and hears nothing: a host that is away is no news. -1: it could not be started.
pid_t start(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = -1;
  if (posix_spawnp(&process, pointers[0], &files, &attributes, pointers.data(), environ) != 0) process = -1;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return process;
}

}  // namespace

HostWatch::HostWatch(std::vector<std::string> hosts, std::vector<std::string> shell)
    : hosts_(std::move(hosts)), shell_(std::move(shell)), next_(std::chrono::steady_clock::now() + pause) {}

HostWatch::~HostWatch() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

std::string HostWatch::serve(TimePoint now) {
  if (hosts_.empty() || now < next_) return "";
  if (process_ < 0) {
    try_next(now);
    return "";
  }
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) == 0) {
    next_ = now + look_interval;
    return "";
  }
  process_ = -1;
  next_ = now + pause;
  const std::string& tried = hosts_[at_];
  at_ = (at_ + 1) % hosts_.size();
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? tried : "";
}

void HostWatch::try_next(TimePoint now) {
  process_ = start(remote_words(shell_, hosts_[at_], "true"));
  next_ = now + (process_ < 0 ? pause : look_interval);
}

}  // namespace tutti::launch
