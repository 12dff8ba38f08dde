// guard_loop.cpp: starts the ranks, reports their ends, forwards signals, and leaves no process behind.
// SPDX-License-Identifier: Apache-2.0
#include "launch/guard_loop.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "launch/process_tree.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

using Kind = GuardMessage::Kind;

TimePoint now() { return std::chrono::steady_clock::now(); }

class GuardLoop {
 public:
  GuardLoop(GuardPlan& plan, int control) : plan_(plan), control_(control), ranks_(plan.ranks.size(), 0) {}

  [[noreturn]] void run() {
    disguise();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start_ranks();
    close_all_but_control();
    watch();
  }

 private:
  void disguise() const {
    constexpr const char* name = "tutti-guard";
    prctl(PR_SET_NAME, name);
    std::fill(plan_.title.begin(), plan_.title.end(), '\0');
    const std::size_t bytes = std::min(plan_.title.size(), std::strlen(name));
    std::copy(name, name + bytes, plan_.title.begin());
  }

  void start_ranks() {
    const int cgroup = plan_.cgroup.make();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      plan_.ranks[rank].cgroup = cgroup;
      const Spawned spawned = spawn(plan_.ranks[rank]);
      if (spawned.error != 0) {
        report({.kind = Kind::not_started, .rank = static_cast<int>(rank), .value = spawned.error});
        return;  // tuttirun ends those that were started
      }
      ranks_[rank] = spawned.id;
      ++running_;
      report({.kind = Kind::started, .rank = static_cast<int>(rank), .process = spawned.id});
    }
  }

  // A process that waits for the end of tuttirun's output, or for its store's port, must not wait for the guard.
  void close_all_but_control() const {
    const auto control = static_cast<unsigned>(control_);
    if (control > 0) syscall(SYS_close_range, 0U, control - 1, 0U);
    syscall(SYS_close_range, control + 1, std::numeric_limits<unsigned>::max(), 0U);
  }

  [[noreturn]] void watch() {
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    const int children = signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
    pollfd watched[] = {{.fd = control_, .events = POLLIN, .revents = 0},
                        {.fd = children, .events = POLLIN, .revents = 0}};
    while (true) {
      if (!reap()) finish();
      if (running_ == 0 && !is_ending_) end_what_is_left();
      if (is_ending_ && now() >= kill_at_) kill_everything();
      poll(watched, 2, is_ending_ ? wire::poll_timeout_ms(now(), kill_at_) : -1);
      signalfd_siginfo ignored;
      while (read(children, &ignored, sizeof(ignored)) > 0) {}
      if (watched[0].revents != 0 && !obey()) watched[0].fd = -1;  // or poll would report the closed socket for ever
    }
  }

  bool reap() {
    std::vector<GuardMessage> ended;
    const bool has_children = reap_children([&](pid_t id, int status) { note_ended(id, status, ended); });
    // Of ranks that ended at the same time, one that a signal killed is the likelier cause: the others may have failed
    // because they lost it.
    std::stable_partition(ended.begin(), ended.end(), [](const GuardMessage& one) { return WIFSIGNALED(one.value); });
    for (const GuardMessage& message : ended) report(message);
    return has_children;
  }

  void note_ended(pid_t id, int status, std::vector<GuardMessage>& ended) {
    const auto found = std::find(ranks_.begin(), ranks_.end(), id);
    if (found == ranks_.end()) return;  // somebody's child that we adopted
    const auto rank = static_cast<int>(found - ranks_.begin());
    ended.push_back({.kind = Kind::ended, .rank = rank, .process = id, .value = status});
    *found = 0;
    --running_;
  }

  void end_what_is_left() {
    const auto left = static_cast<int>(descendants_of(getpid()).size());
    if (!ranks_.empty() && left > 0) report({.kind = Kind::left_behind, .value = left});
    begin_end(SIGTERM, plan_.grace);
  }

  void begin_end(int signal, Duration grace) {
    const TimePoint kill_at = signal == SIGKILL ? now() : now() + grace;
    kill_at_ = is_ending_ ? std::min(kill_at_, kill_at) : kill_at;
    is_ending_ = true;
    if (signal != SIGKILL) signal_all(signal);
  }

  // Without /proc the process tree cannot be read, but the ranks and their groups are known.
  void signal_all(int signal) const {
    if (signal_descendants(getpid(), signal) == 0) signal_rank_groups(signal);
  }

  void signal_rank_groups(int signal) const {
    for (const pid_t id : ranks_) {
      if (id != 0) kill(-id, signal);
    }
  }

  // Whether tuttirun is still there.
  bool obey() {
    GuardMessage message;
    const ssize_t bytes = recv(control_, &message, sizeof(message), MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (bytes != sizeof(message)) {
      if (!is_ending_) begin_end(SIGTERM, plan_.grace);
      return false;
    }
    switch (message.kind) {
      case Kind::signal_ranks:
        for (const pid_t id : ranks_) {
          if (id != 0) kill(id, message.value);
        }
        break;
      case Kind::signal_all: signal_all(message.value); break;
      case Kind::end: begin_end(message.value, std::chrono::milliseconds(message.grace_ms)); break;
      default: break;
    }
    return true;
  }

  [[noreturn]] void kill_everything() {
    signal_rank_groups(SIGKILL);
    std::vector<GuardMessage> ended;
    const auto left = kill_descendants(plan_.cgroup, now() + unkillable_after,
                                       [&](pid_t id, int status) { note_ended(id, status, ended); });
    for (const GuardMessage& message : ended) report(message);
    for (const ProcessStatus& process : left) report({.kind = Kind::unkillable, .process = process.id});
    finish();
  }

  [[noreturn]] void finish() {
    plan_.cgroup.remove();
    report({.kind = Kind::done});
    _exit(0);
  }

  void report(const GuardMessage& message) const {
    while (send(control_, &message, sizeof(message), MSG_NOSIGNAL) < 0 && errno == EINTR) {}
  }

  GuardPlan& plan_;
  int control_;
  std::vector<pid_t> ranks_;  // 0: not running
  std::size_t running_ = 0;
  bool is_ending_ = false;
  TimePoint kill_at_{};
};

}  // namespace

void run_guard(GuardPlan& plan, int control) { GuardLoop(plan, control).run(); }

}  // namespace tutti::launch
