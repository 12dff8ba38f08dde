// spawn.cpp: clone, a few system calls, execve.
// SPDX-License-Identifier: Apache-2.0
//
// posix_spawn can neither tie the child's life to ours nor put it into a cgroup at birth. CLONE_VFORK without CLONE_VM stops
// us until the child has executed, without sharing its stack with us; errors come back through a page that both see.
#include "launch/spawn.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace tutti::launch {
namespace {

// Between clone and execve only system calls: the memory is a copy of a process that may have had threads.
[[noreturn]] void become(const SpawnRequest& request, pid_t parent, volatile int* error) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that was set
  // Not a session: where the system shares the processors out by session (sched_autogroup), ranks of different ones could not
  // yield to each other.
  setpgid(0, 0);
  if (request.processors) sched_setaffinity(0, sizeof(cpu_set_t), &*request.processors);
  setrlimit(RLIMIT_NOFILE, &request.descriptors);
  if (dup2(request.input, STDIN_FILENO) < 0 || dup2(request.output, STDOUT_FILENO) < 0 ||
      dup2(request.error, STDERR_FILENO) < 0) {
    *error = errno;
    _exit(127);
  }
  for (const int inherited : {request.news, request.record, request.rounds}) {
    if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
  }
  if (request.signals.ignores_child_end) signal(SIGCHLD, SIG_IGN);
  sigprocmask(SIG_SETMASK, &request.signals.blocked, nullptr);
  execve(request.path, request.words, request.environment);
  *error = errno;
  _exit(127);
}

long clone_stopped(int cgroup) {
  if (cgroup >= 0) {
    clone_args arguments{};
    arguments.flags = CLONE_VFORK | CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup);
    const long id = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (id >= 0) return id;  // some containers forbid clone3; the group then stays empty
  }
  return syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
}

// One int that the child, which has a copy of everything else, can write for us.
class SharedError {
 public:
  SharedError() : page_(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  SharedError(const SharedError&) = delete;
  SharedError& operator=(const SharedError&) = delete;
  ~SharedError() {
    if (exists()) munmap(page_, sizeof(int));
  }
  [[nodiscard]] bool exists() const { return page_ != MAP_FAILED; }
  [[nodiscard]] volatile int* value() const { return static_cast<volatile int*>(page_); }

 private:
  void* page_;
};

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

InheritedSignals take_over_signals() {
  InheritedSignals inherited{.ignores_child_end = is_ignored(SIGCHLD), .ignores_hangup = is_ignored(SIGHUP)};
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &inherited.blocked);
  signal(SIGCHLD, SIG_DFL);
  return inherited;
}

Spawned spawn(const SpawnRequest& request) {
  const SharedError error;
  if (!error.exists()) return {.error = ENOMEM};
  const pid_t parent = getpid();
  const long id = clone_stopped(request.cgroup);
  if (id == 0) become(request, parent, error.value());
  if (id < 0) return {.error = errno};
  if (*error.value() != 0) {
    waitpid(static_cast<pid_t>(id), nullptr, 0);
    return {.error = *error.value()};
  }
  return {.id = static_cast<pid_t>(id)};
}

}  // namespace tutti::launch
