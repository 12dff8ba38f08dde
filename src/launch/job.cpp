// job.cpp: one loop over four descriptors: the guard, signals, the printer, the ranks' pipes.
// SPDX-License-Identifier: Apache-2.0
#include "launch/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "launch/process_tree.hpp"
#include "launch/start.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

using Kind = GuardMessage::Kind;

constexpr std::size_t last_lines_max = 20;

// A hang-up that tuttirun was told to ignore (nohup) does not end the job.
UniqueFd open_signals(const InheritedSignals& inherited) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT})
    sigaddset(&watched, signal);
  if (inherited.ignores_hangup) sigdelset(&watched, SIGHUP);
  return UniqueFd(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

class Job {
 public:
  explicit Job(const JobPlan& plan)
      : plan_(plan),
        started_at_(std::chrono::steady_clock::now()),
        cgroup_(Cgroup::below_own(plan.id)),
        printer_(STDOUT_FILENO, STDERR_FILENO),
        output_(output_options(plan), printer_),
        running_(static_cast<std::size_t>(plan.ranks), true),
        signals_(open_signals(plan.signals)),
        guard_(start_guard(plan, output_, cgroup_)) {
    output_.close_writers();
  }

  int run() {
    while (!is_guard_gone_ || !output_.is_drained()) wait_and_serve();
    report();
    while (!printer_.is_idle()) wait_and_serve();
    return status();
  }

 private:
  void wait_and_serve() {
    pollfd watched[] = {{.fd = is_guard_gone_ ? -1 : guard_.fd(), .events = POLLIN, .revents = 0},
                        {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                        {.fd = printer_.fd(), .events = POLLIN, .revents = 0},
                        {.fd = printer_.has_room() ? output_.fd() : -1, .events = POLLIN, .revents = 0}};
    const bool is_timed = plan_.options.timeout && cause_.kind == Cause::Kind::none && !is_guard_gone_;
    const TimePoint deadline = is_timed ? started_at_ + *plan_.options.timeout : TimePoint::max();
    poll(watched, 4, is_timed ? wire::poll_timeout_ms(std::chrono::steady_clock::now(), deadline) : -1);
    if (watched[3].revents != 0) output_.pump();
    if (watched[2].revents != 0) printer_.acknowledge();
    if (watched[1].revents != 0) serve_signals();
    if (watched[0].revents != 0) hear_guard();
    check_output();
    if (is_timed && std::chrono::steady_clock::now() >= deadline) time_out();
  }

  // Records the first cause and has the guard end all processes.
  void end_for(Cause cause, int signal = SIGTERM) {
    if (cause_.kind != Cause::Kind::none) return;
    cause.after = std::chrono::steady_clock::now() - started_at_;
    cause_ = std::move(cause);
    ask_guard_to_end(signal);
  }

  void ask_guard_to_end(int signal) {
    const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(plan_.options.grace);
    guard_.send({.kind = Kind::end, .value = signal, .grace_ms = grace.count()});
  }

  void hear_guard() {
    GuardMessage message;
    while (true) {
      switch (guard_.receive(message)) {
        case Guard::Received::nothing: return;
        case Guard::Received::closed: return lose_guard();
        case Guard::Received::message: break;
      }
      if (message.kind == Kind::done) {
        is_guard_gone_ = true;
        waitpid(guard_.id(), nullptr, 0);
        return;
      }
      hear(message);
    }
  }

  void hear(const GuardMessage& message) {
    const int rank = plan_.first_rank + message.rank;
    switch (message.kind) {
      case Kind::not_started: end_for({.kind = Cause::Kind::not_started, .rank = rank, .value = message.value}); break;
      case Kind::ended: rank_ended(message); break;
      case Kind::left_behind:
        if (cause_.kind == Cause::Kind::none)
          say(fmt::format("the ranks left {} process{} behind, which {} being ended", message.value,
                          message.value == 1 ? "" : "es", message.value == 1 ? "is" : "are"));
        break;
      case Kind::unkillable: say(fmt::format("process {} does not end, not even by SIGKILL", message.process)); break;
      default: break;
    }
  }

  void rank_ended(const GuardMessage& message) {
    running_[static_cast<std::size_t>(message.rank)] = false;
    if (message.value == 0) return;
    has_failed_ = true;
    Cause cause{.rank = plan_.first_rank + message.rank, .process = message.process};
    if (WIFSIGNALED(message.value)) {
      cause.kind = Cause::Kind::signalled;
      cause.value = WTERMSIG(message.value);
      cause.has_core = WCOREDUMP(message.value);
    } else {
      cause.kind = Cause::Kind::exited;
      cause.value = WEXITSTATUS(message.value);
    }
    end_for(std::move(cause));
  }

  // The kernel has killed the ranks with the guard; processes that they started are now our children.
  void lose_guard() {
    is_guard_gone_ = true;
    end_for({.kind = Cause::Kind::guard_lost, .process = guard_.id()});
    has_failed_ = true;
    const auto left = kill_descendants(cgroup_, std::chrono::steady_clock::now() + unkillable_after, [](pid_t, int) {});
    for (const ProcessInfo& process : left) say(fmt::format("process {} ({}) does not end", process.id, process.name));
    cgroup_.remove();
  }

  void serve_signals() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) serve_signal(static_cast<int>(info.ssi_signo));
  }

  void serve_signal(int signal) {
    switch (signal) {
      case SIGUSR1:
      case SIGUSR2: guard_.send({.kind = Kind::signal_ranks, .value = signal}); break;
      case SIGTSTP:  // the ranks do not hear the terminal, and what they do about SIGTSTP is their affair
        guard_.send({.kind = Kind::signal_all, .value = SIGSTOP});
        raise(SIGSTOP);
        break;
      case SIGCONT: guard_.send({.kind = Kind::signal_all, .value = SIGCONT}); break;
      default: be_asked_to_end(signal);
    }
  }

  // A second Ctrl-C, or the same signal again, ends the job at once.
  void be_asked_to_end(int signal) {
    if (is_guard_gone_) _exit(cause_.kind == Cause::Kind::none ? 128 + signal : status());  // only output is waited for
    const bool is_first = cause_.kind == Cause::Kind::none;
    if (is_first) {
      end_for({.kind = Cause::Kind::asked, .value = signal}, signal);
    } else if (signal == SIGINT || (cause_.kind == Cause::Kind::asked && cause_.value == signal)) {
      ask_guard_to_end(SIGKILL);
    }
  }

  void time_out() {
    Cause cause{.kind = Cause::Kind::timed_out, .limit = *plan_.options.timeout};
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      if (running_[rank]) cause.ranks.push_back(plan_.first_rank + static_cast<int>(rank));
    }
    if (!cause.ranks.empty()) cause.rank = cause.ranks.front();
    end_for(std::move(cause));
  }

  void check_output() {
    if (const int error = printer_.failure(Stream::output)) end_for({.kind = Cause::Kind::output_lost, .value = error});
    if (!output_.log_failure().empty()) end_for({.kind = Cause::Kind::log_lost, .text = output_.log_failure()});
  }

  void say(const std::string& sentence) {
    printer_.text(Stream::error).append(fmt::format("{}: {}\n", plan_.name, sentence));
    printer_.flush();
  }

  // The last lines of the rank that matters, then the cause: the end of the output says why.
  void report() {
    if (cause_.kind == Cause::Kind::none) return;
    if (cause_.rank >= 0 && cause_.kind != Cause::Kind::not_started) {
      const std::string lines = output_.last_lines(cause_.rank - plan_.first_rank, Stream::error, last_lines_max);
      if (!lines.empty()) {
        say(fmt::format("the last lines of rank {}:", cause_.rank));
        printer_.text(Stream::error).append(lines);
      }
    }
    say(describe(cause_, {.world_size = plan_.world_size, .program = plan_.options.program}));
  }

  // Ranks that exit with 0 after a signal have succeeded.
  [[nodiscard]] int status() const {
    const bool ended_well = cause_.kind == Cause::Kind::asked && !has_failed_;
    return ended_well ? 0 : exit_status(cause_);
  }

  const JobPlan& plan_;
  TimePoint started_at_;
  Cgroup cgroup_;  // for the case that the guard is lost
  Printer printer_;
  RankOutput output_;
  std::vector<bool> running_;
  UniqueFd signals_;
  Guard guard_;
  bool is_guard_gone_ = false;
  bool has_failed_ = false;  // a rank did not end with 0, for whatever reason
  Cause cause_;
};

}  // namespace

int run_job(const JobPlan& plan) { return Job(plan).run(); }

}  // namespace tutti::launch
