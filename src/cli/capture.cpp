// capture.cpp: runs another program and captures its output, within a time limit.
// SPDX-License-Identifier: Apache-2.0
#include "cli/capture.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"

extern char** environ;

namespace tutti::cli {

namespace {

constexpr std::size_t output_bytes_max = 1 << 20;

// Starts the command in a process group of its own, so that what it starts ends with it. Returns -1 and sets errno.
pid_t start(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  errno = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return errno == 0 ? child : -1;
}

int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

// Reads to the end; false when the deadline came first, or too much was printed.
bool read_all(int fd, TimePoint deadline, std::string& output) {
  std::array<char, 4096> part{};
  for (;;) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    output.append(part.data(), static_cast<std::size_t>(got));
    if (output.size() > output_bytes_max) return false;
  }
}

// Whether it ended by the deadline. A program that has closed its output ends soon, but the wait for it is limited.
bool ends_by(pid_t child, TimePoint deadline) {
  const UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd waiting{.fd = handle.get(), .events = POLLIN, .revents = 0};
  for (;;) {
    const int ready = handle ? poll(&waiting, 1, milliseconds_until(deadline)) : 0;
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace

Captured capture(const std::vector<std::string>& command, Duration limit) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.problem = fmt::format("pipe: {}", std::strerror(errno))};
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const TimePoint deadline = deadline_after(steady_clock().now(), limit);
  const pid_t child = start(command, writing.get());
  if (child < 0) return {.problem = fmt::format("{}: {}", command.front(), std::strerror(errno))};
  writing.reset();
  Captured captured;
  const bool ended = read_all(reading.get(), deadline, captured.output) && ends_by(child, deadline);
  if (!ended) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!ended) {
    captured.problem = fmt::format("{} did not answer within {}", command.front(), format_duration(limit));
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    captured.problem = WIFEXITED(status) ? fmt::format("{} ended with status {}", command.front(), WEXITSTATUS(status))
                                         : fmt::format("{} was ended by signal {}", command.front(), WTERMSIG(status));
  }
  return captured;
}

}  // namespace tutti::cli
