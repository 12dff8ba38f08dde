// process_fd_test.cpp: a forked child has none of its parent's descriptors, and closes none of its own in their place.
// SPDX-License-Identifier: Apache-2.0
#include "base/process_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace tutti {
namespace {

UniqueFd event() { return UniqueFd(eventfd(0, EFD_CLOEXEC)); }
bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(ProcessFd, IsClosedOnceAndByItsLastHolder) {
  ProcessFd first(event());
  const int fd = first.get();
  ProcessFd second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(is_open(fd));
  second = ProcessFd();
  EXPECT_FALSE(is_open(fd));
}

TEST(ProcessFd, IsNotKeptByAChildWhoseOwnDescriptorOfTheNumberStaysOpen) {
  ProcessFd parents(event());
  UniqueFd kept = event();
  const UniqueFd given = ProcessFd(event()).release();
  const int fd = parents.get();
  EXPECT_TRUE(holds_in_child([&] {
    ProcessFd::close_in_child();
    if (is_open(fd) || !is_open(kept.get()) || !is_open(given.get())) return false;
    const UniqueFd own = event();  // the lowest number that is free
    if (own.get() > fd) return false;
    const UniqueFd same(dup2(own.get(), fd));
    parents.reset();
    ProcessFd::close_in_child();
    return is_open(fd);
  }));
  EXPECT_TRUE(is_open(fd) && is_open(kept.get()));
}

TEST(ProcessFd, IsNotKeptByAChildOfAProcessWhoseOtherThreadsOpenAndCloseThem) {
  std::atomic<bool> stop = false;
  std::thread other([&] {
    std::vector<ProcessFd> many;
    while (!stop) {
      for (int i = 0; i < 20; ++i) many.emplace_back(event());
      many.clear();
    }
  });
  const ProcessFd parents(event());
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      ProcessFd::close_in_child();
      return !is_open(parents.get());
    }));
    EXPECT_TRUE(is_open(parents.get()));
  }
  stop = true;
  other.join();
}

}  // namespace
}  // namespace tutti
