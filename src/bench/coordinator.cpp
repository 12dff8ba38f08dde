// coordinator.cpp: the private folder of a run, its socket, and the signals that end it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <tutti/error.hpp>

#include "bench/library_job.hpp"

namespace tutti::bench {

namespace {

constexpr int backlog = 1024;

std::string make_private_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "tutti-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("cannot make a folder {}: {}", name, std::generic_category().message(errno)));
  }
  return name;
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

}  // namespace

Coordinator::Coordinator() : folder_(make_private_folder()) {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC));
  listening_ = LineSocket::listen(socket_path(), backlog);
}

Coordinator::~Coordinator() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

int Coordinator::wait_readable(const std::vector<int>& fds, TimePoint deadline) const {
  std::vector<pollfd> polled{{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
  for (const int fd : fds) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  int ready = 0;
  do ready = poll(polled.data(), polled.size(), milliseconds_until(deadline));
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) return -1;
  if (polled[0].revents != 0) {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) == sizeof info) {
      throw Interrupted{.signal = static_cast<int>(info.ssi_signo)};
    }
  }
  for (std::size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents != 0) return static_cast<int>(i) - 1;
  }
  return -1;
}

LineSocket Coordinator::accept() const {
  UniqueFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) throw Error(fmt::format("benchmark: accept: {}", std::generic_category().message(errno)));
  return LineSocket(std::move(fd));
}

}  // namespace tutti::bench
