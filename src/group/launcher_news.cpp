// launcher_news.cpp: one thread that reads the launcher's pipe.
// SPDX-License-Identifier: Apache-2.0
#include "group/launcher_news.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/made_fd.hpp"
#include "base/start_thread.hpp"

namespace tutti {
namespace {

constexpr std::size_t line_bytes_max = 4096;  // what a pipe takes in one piece

}  // namespace

LauncherPipe LauncherNews::open_pipe(const Environment& environment) {
  const auto number = environment.integer("TUTTI_LAUNCHER_FD", 0, 1 << 20);
  struct stat status {};
  // A program that was started by a rank may have the variable, but not the pipe.
  if (!number || fstat(static_cast<int>(*number), &status) != 0 || !S_ISFIFO(status.st_mode)) return {};
  fcntl(static_cast<int>(*number), F_SETFD, FD_CLOEXEC);
  return {.reader = UniqueFd(fcntl(static_cast<int>(*number), F_DUPFD_CLOEXEC, 3)),
          .job = environment.get("TUTTI_JOB").value_or("")};
}

LauncherNews::LauncherNews(LauncherPipe pipe, Told told)
    : pipe_(std::move(pipe)),
      stop_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")),
      told_(std::move(told)),
      thread_(start_thread("that listens to the launcher", [this] { listen(); })) {}

LauncherNews::~LauncherNews() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = ::write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void LauncherNews::listen() {
  pollfd watched[] = {{.fd = pipe_.reader.get(), .events = POLLIN, .revents = 0},
                      {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  std::array<char, line_bytes_max> buffer;
  while (true) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (watched[1].revents != 0) return;
    if (watched[0].revents == 0) continue;
    const ssize_t bytes = ::read(pipe_.reader.get(), buffer.data(), buffer.size());
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes <= 0) return;  // the launcher is gone, and this process will be soon
    text_.append(buffer.data(), static_cast<std::size_t>(bytes));
    take_lines();
  }
}

void LauncherNews::take_lines() {
  for (std::size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
    const std::string_view line = std::string_view(text_).substr(0, end);
    const std::size_t job_at = line.find(' ');
    const std::size_t how_at = line.find(' ', job_at == std::string_view::npos ? job_at : job_at + 1);
    if (how_at == std::string_view::npos || line.substr(job_at + 1, how_at - job_at - 1) != pipe_.job) continue;
    if (const auto rank = parse_integer(line.substr(0, job_at)))
      told_(static_cast<int>(*rank), line.substr(how_at + 1));
  }
  if (text_.size() > line_bytes_max) text_.clear();
}

}  // namespace tutti
