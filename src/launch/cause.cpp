// cause.cpp: the last line that tuttirun prints.
// SPDX-License-Identifier: Apache-2.0
#include "launch/cause.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <cerrno>
#include <system_error>

#include "base/environment.hpp"
#include "base/start_thread.hpp"

namespace tutti::launch {
namespace {

constexpr int status_timed_out = 124;  // as timeout(1) says it
constexpr int status_not_started = 2;

std::string who(const Cause& cause, const JobFacts& job) {
  const std::string where = cause.host.empty() ? "" : fmt::format(" on {}", cause.host);
  return fmt::format("rank {} of {} ({}, process {}{})", cause.rank, job.world_size, job.program, cause.process, where);
}

// Three digits are enough for a person.
std::string short_duration(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  return seconds < 100 ? fmt::format("{:.2f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string_view hint(int signal) {
  if (signal == SIGKILL) return ": by somebody, or by the kernel for want of memory (dmesg knows)";
  return "";
}

}  // namespace

int exit_status(const Cause& cause) {
  switch (cause.kind) {
    case Cause::Kind::none: return 0;
    case Cause::Kind::exited: return cause.value;
    case Cause::Kind::signalled:
    case Cause::Kind::asked: return 128 + cause.value;
    case Cause::Kind::not_started: return status_not_started;
    case Cause::Kind::timed_out: return status_timed_out;
    case Cause::Kind::guard_lost: return 128 + SIGKILL;
    case Cause::Kind::output_lost: return cause.value == EPIPE ? 128 + SIGPIPE : 1;
    case Cause::Kind::log_lost:
    case Cause::Kind::host_back:
    case Cause::Kind::host_lost: return 1;
  }
  return 1;
}

std::string describe(const Cause& cause, const JobFacts& job) {
  const std::string after = short_duration(cause.after);
  switch (cause.kind) {
    case Cause::Kind::none: return fmt::format("all {} ranks ended well after {}", job.world_size, after);
    case Cause::Kind::exited:
      return fmt::format("{} exited with status {} after {}", who(cause, job), cause.value, after);
    case Cause::Kind::signalled:
      return fmt::format("{} was killed by signal {}{} after {}{}", who(cause, job), describe_signal(cause.value),
                         cause.has_core ? ", with a core dump," : "", after, hint(cause.value));
    case Cause::Kind::not_started:
      return fmt::format("rank {} of {} could not be started{}: {}: {}{}", cause.rank, job.world_size,
                         cause.host.empty() ? "" : " on " + cause.host, job.program,
                         cause.value == EAGAIN ? why_not_started(EAGAIN) : std::generic_category().message(cause.value),
                         cause.value == ENOEXEC ? "; a script needs a first line such as #!/bin/sh" : "");
    case Cause::Kind::timed_out:
      return fmt::format("the job ran past --timeout {} and was ended; rank{} {} of {} still ran",
                         format_duration(cause.limit), cause.ranks.size() == 1 ? "" : "s", describe_ranks(cause.ranks),
                         job.world_size);
    case Cause::Kind::asked: return fmt::format("ended by signal {} after {}", describe_signal(cause.value), after);
    case Cause::Kind::guard_lost:
      return fmt::format("{} guard process {} was killed after {}, and the ranks with it",
                         cause.host.empty() ? "its" : cause.host + "'s", cause.process, after);
    case Cause::Kind::output_lost:
      return fmt::format("standard output cannot be written: {}; the job was ended after {}",
                         std::generic_category().message(cause.value), after);
    case Cause::Kind::host_lost: return fmt::format("host {} was lost after {}: {}", cause.host, after, cause.text);
    case Cause::Kind::host_back: return fmt::format("host {} can be used again after {}", cause.host, after);
    case Cause::Kind::log_lost: return fmt::format("{}; the job was ended after {}", cause.text, after);
  }
  return "";
}

std::string describe_signal(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* description = sigdescr_np(signal);
  if (!name || !description) return std::to_string(signal);
  return fmt::format("{}, SIG{} ({})", signal, name, description);
}

std::string describe_ranks(std::span<const int> ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace tutti::launch
