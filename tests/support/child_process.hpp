// child_process.hpp: for tests: a forked process with a socket to its parent; it ends with the test at the latest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "base/unique_fd.hpp"

namespace tutti::shm {

// Sends and receives short texts, in order.
class Line {
 public:
  explicit Line(UniqueFd socket) : socket_(std::move(socket)) {}
  void say(const std::string& text) {
    if (send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) throw std::runtime_error("line is cut");
  }
  // Throws after 30 s, or when the other side is gone.
  std::string hear() {
    pollfd wanted{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, 30'000) != 1) throw std::runtime_error("nothing was said for 30 s");
    std::array<char, 4096> text{};
    const ssize_t got = recv(socket_.get(), text.data(), text.size(), 0);
    if (got <= 0) throw std::runtime_error("the other side is gone");
    return {text.data(), static_cast<std::size_t>(got)};
  }

 private:
  UniqueFd socket_;
};

class ChildProcess {
 public:
  static constexpr int threw = 99;

  // The child exits with what `body` returns.
  explicit ChildProcess(const std::function<int(Line&)>& body) : line_(UniqueFd()) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::runtime_error("socketpair");
    UniqueFd mine(ends[0]), theirs(ends[1]);
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("fork");
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(60);
      mine.reset();
      Line line(std::move(theirs));
      _exit(run(body, line));
    }
    line_ = Line(std::move(mine));
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (process_ > 0) {
      signal(SIGKILL);
      wait();
    }
  }

  [[nodiscard]] Line& line() { return line_; }
  [[nodiscard]] pid_t process() const { return process_; }
  void signal(int number) const { kill(process_, number); }
  // When it returns, the child is stopped.
  void stop() const {
    signal(SIGSTOP);
    int status = 0;
    waitpid(process_, &status, WUNTRACED);
  }
  // The exit status, or minus the signal that ended it. Ends by itself: the child has an alarm set.
  int wait() {
    int status = 0;
    waitpid(std::exchange(process_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static int run(const std::function<int(Line&)>& body, Line& line) {
    try {
      return body(line);
    } catch (const std::exception& error) {
      const std::string text = std::string("child: ") + error.what() + "\n";
      [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
      return threw;
    }
  }

  Line line_;
  pid_t process_ = -1;
};

}  // namespace tutti::shm
