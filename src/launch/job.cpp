// job.cpp: one loop over the crew, signals and the printer.
// SPDX-License-Identifier: Apache-2.0
#include "launch/job.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>

#include "base/made_fd.hpp"
#include "launch/host_watch.hpp"
#include "launch/printer.hpp"
#include "launch/rank_news.hpp"
#include "launch/rank_output.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t last_lines_max = 20;

// A hang-up that tuttirun was told to ignore (nohup) does not end the job.
UniqueFd open_signals(const InheritedSignals& inherited) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT})
    sigaddset(&watched, signal);
  if (inherited.ignores_hangup) sigdelset(&watched, SIGHUP);
  return made(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "a descriptor for signals");
}

bool has_colour(int descriptor) {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) != 0 && !(none && *none) && !(terminal && std::string_view(terminal) == "dumb");
}

RankOutputOptions output_options(const JobPlan& plan) {
  const RunOptions& options = plan.options;
  return {.ranks = plan.ranks,
          .first_rank = plan.first_rank,
          .hosts = plan.hosts,
          .log_folder = options.log_folder,
          .continues_logs = plan.continues_logs,
          .is_shown = !options.is_quiet && (options.log_folder.empty() || options.tees),
          .has_prefix = options.has_prefix,
          .has_colour = {has_colour(STDOUT_FILENO), has_colour(STDERR_FILENO)}};
}

class Job final : private CrewListener {
 public:
  Job(const JobPlan& plan, Crew& crew)
      : plan_(plan),
        crew_(crew),
        started_at_(std::chrono::steady_clock::now()),
        printer_(STDOUT_FILENO, STDERR_FILENO),
        output_(output_options(plan), printer_),
        running_(static_cast<std::size_t>(plan.ranks), true),
        signals_(open_signals(plan.signals)) {
    crew_.start();
  }

  JobEnd run() {
    while (!crew_.is_gone() || !output_.is_drained()) wait_and_serve();
    // What killed a rank does not count if others went on to their end; a rank that failed by itself does.
    if (!is_ending() && (!some_ended_well_ || survived_.kind == Cause::Kind::exited)) cause_ = survived_;
    report();
    while (!printer_.is_idle()) wait_and_serve();
    return {.status = status(), .is_failure = is_failure(), .may_grow = cause_.kind == Cause::Kind::host_back};
  }

 private:
  void wait_and_serve() {
    const Room room = printer_.has_room() ? Room::some : Room::none;
    watched_.assign({{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                     {.fd = printer_.fd(), .events = POLLIN, .revents = 0}});
    crew_.watch(watched_, room);
    const bool is_timed = plan_.deadline && cause_.kind == Cause::Kind::none && !crew_.is_gone();
    const TimePoint deadline = is_timed ? *plan_.deadline : TimePoint::max();
    TimePoint wake_at = std::min(deadline, crew_.next_timer());
    if (plan_.absent_hosts && !is_ending()) wake_at = std::min(wake_at, plan_.absent_hosts->next_timer());
    poll(watched_.data(), watched_.size(), wire::poll_timeout_ms(std::chrono::steady_clock::now(), wake_at));
    crew_.serve(*this, room);
    printer_.flush();
    if (watched_[1].revents != 0) printer_.acknowledge();
    if (watched_[0].revents != 0) serve_signals();
    check_output();
    if (plan_.absent_hosts && !is_ending()) {
      if (std::string host = plan_.absent_hosts->serve(std::chrono::steady_clock::now()); !host.empty())
        end_for({.kind = Cause::Kind::host_back, .host = std::move(host)});
    }
    if (is_timed && std::chrono::steady_clock::now() >= deadline) time_out();
  }

  // Records the first cause and has all processes ended.
  void end_for(Cause cause, int signal = SIGTERM) {
    if (is_ending()) return;
    record(std::move(cause));
    crew_.end(signal, plan_.options.grace);
  }

  void record(Cause cause) {
    cause.after = std::chrono::steady_clock::now() - started_at_;
    cause_ = std::move(cause);
  }

  [[nodiscard]] bool is_ending() const { return cause_.kind != Cause::Kind::none; }

  // A rank or a host failed. Where the others go on, it is said at once, and counts at the end unless they end well.
  void fail_for(Cause cause) {
    if (!plan_.options.keeps_going || is_ending()) return end_for(std::move(cause));
    cause.after = std::chrono::steady_clock::now() - started_at_;
    say(fmt::format("{}; the others go on", describe_cause(cause)));
    // A rank that fails by itself counts more than one that somebody killed.
    const bool exited = cause.kind == Cause::Kind::exited;
    if (survived_.kind == Cause::Kind::none || (exited && survived_.kind != Cause::Kind::exited))
      survived_ = std::move(cause);
  }

  void rank_not_started(int rank, int error) override {
    end_for({.kind = Cause::Kind::not_started, .rank = rank, .value = error, .host = host_of(rank)});
  }

  void rank_ended(int rank, pid_t process, int status) override {
    running_[static_cast<std::size_t>(rank - plan_.first_rank)] = false;
    some_ended_well_ |= status == 0;
    if (status == 0) return;
    if (!is_ending()) crew_.tell_ranks(rank, describe_process_end(process, status, host_of(rank)));
    has_failed_ = true;
    Cause cause{.rank = rank, .process = process, .host = host_of(rank)};
    if (WIFSIGNALED(status)) {
      cause.kind = Cause::Kind::signalled;
      cause.value = WTERMSIG(status);
      cause.has_core = WCOREDUMP(status);
    } else {
      cause.kind = Cause::Kind::exited;
      cause.value = WEXITSTATUS(status);
    }
    fail_for(std::move(cause));
  }

  void rank_given_up(int rank) override { running_[static_cast<std::size_t>(rank - plan_.first_rank)] = false; }
  void output(int rank, Stream stream, std::string_view bytes) override { output_.add(rank, stream, bytes); }
  void output_ended(int rank, Stream stream) override { output_.finish(rank, stream); }

  void part_lost(Cause cause) override {
    for (std::size_t index = 0; cause.kind == Cause::Kind::host_lost && index < plan_.hosts.size(); ++index) {
      if (plan_.hosts[index] == short_name(cause.host))
        crew_.tell_ranks(static_cast<int>(index), fmt::format("host {} was lost: {}", cause.host, cause.text));
    }
    has_failed_ = true;
    fail_for(std::move(cause));
  }

  // What a job that fails leaves behind is of no interest.
  void left_behind(int processes) override {
    if (cause_.kind != Cause::Kind::none) return;
    say(fmt::format("the ranks left {} process{} behind, which {} being ended", processes, processes == 1 ? "" : "es",
                    processes == 1 ? "is" : "are"));
  }

  void notice(const std::string& sentence) override { say(sentence); }

  [[nodiscard]] std::string host_of(int rank) const {
    return plan_.hosts.empty() ? "" : plan_.hosts[static_cast<std::size_t>(rank - plan_.first_rank)];
  }

  void serve_signals() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) serve_signal(static_cast<int>(info.ssi_signo));
  }

  void serve_signal(int signal) {
    switch (signal) {
      case SIGUSR1:
      case SIGUSR2: crew_.signal_ranks(signal); break;
      case SIGTSTP:  // the ranks do not hear the terminal, and what they do about SIGTSTP is their affair
        crew_.signal_all(SIGSTOP);
        raise(SIGSTOP);
        break;
      case SIGCONT: crew_.signal_all(SIGCONT); break;
      default: be_asked_to_end(signal);
    }
  }

  // A second Ctrl-C, or the same signal again, ends the job at once.
  void be_asked_to_end(int signal) {
    if (crew_.is_gone())
      _exit(cause_.kind == Cause::Kind::none ? 128 + signal : status());  // only output is waited for
    const bool is_first = cause_.kind == Cause::Kind::none;
    if (is_first) {
      if (signal == SIGTERM) crew_.ask_where();  // a batch system, most likely: nobody is there to be kept waiting
      end_for({.kind = Cause::Kind::asked, .value = signal}, signal);
    } else if (signal == SIGINT || (cause_.kind == Cause::Kind::asked && cause_.value == signal)) {
      crew_.end(SIGKILL, plan_.options.grace);
    }
  }

  void time_out() {
    Cause cause{.kind = Cause::Kind::timed_out, .limit = *plan_.options.timeout};
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      if (running_[rank]) cause.ranks.push_back(plan_.first_rank + static_cast<int>(rank));
    }
    if (!cause.ranks.empty()) cause.rank = cause.ranks.front();
    crew_.ask_where();  // it can be asked for as long as they run
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
      const std::string lines = output_.last_lines(cause_.rank, Stream::error, last_lines_max);
      if (!lines.empty()) {
        say(fmt::format("the last lines of rank {}:", cause_.rank));
        printer_.text(Stream::error).append(lines);
      }
    }
    say_last_calls();
    dump_calls();
    say(describe_cause(cause_));
  }

  void dump_calls() {
    if (plan_.options.dump_folder.empty()) return;
    try {
      crew_.dump_calls(plan_.options.dump_folder);
    } catch (const std::exception& error) {
      say(fmt::format("--dump: {}", error.what()));
    }
  }

  // Of the rank that matters, or of those that had not ended in time.
  void say_last_calls() {
    constexpr std::size_t named_max = 8;
    std::vector<int> ranks = cause_.ranks;
    if (ranks.empty() && cause_.rank >= 0) ranks.push_back(cause_.rank);
    for (const int rank : std::span(ranks).first(std::min(ranks.size(), named_max))) {
      if (const std::string call = crew_.last_call(rank); !call.empty()) say(fmt::format("rank {}: {}", rank, call));
    }
  }

  [[nodiscard]] std::string describe_cause(const Cause& cause) const {
    return describe(cause, {.world_size = plan_.world_size, .program = plan_.options.program});
  }

  // Ranks that exit with 0 after a signal have succeeded.
  [[nodiscard]] int status() const {
    const bool ended_well = cause_.kind == Cause::Kind::asked && !has_failed_;
    return ended_well ? 0 : exit_status(cause_);
  }

  [[nodiscard]] bool is_failure() const {
    switch (cause_.kind) {
      case Cause::Kind::exited:
      case Cause::Kind::signalled:
      case Cause::Kind::guard_lost:
      case Cause::Kind::host_lost: return true;
      default: return false;
    }
  }

  const JobPlan& plan_;
  Crew& crew_;
  TimePoint started_at_;
  Printer printer_;
  RankOutput output_;
  std::vector<bool> running_;
  UniqueFd signals_;
  std::vector<pollfd> watched_;
  bool has_failed_ = false;  // a rank did not end with 0, for whatever reason
  Cause cause_;
  Cause survived_;  // the first failure that did not end the job
  bool some_ended_well_ = false;
};

}  // namespace

JobEnd run_job(const JobPlan& plan, Crew& crew) { return Job(plan, crew).run(); }

std::optional<TimePoint> deadline_of(const RunOptions& options) {
  if (!options.timeout) return std::nullopt;
  return deadline_after(std::chrono::steady_clock::now(), *options.timeout);
}

}  // namespace tutti::launch
