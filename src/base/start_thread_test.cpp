// start_thread_test.cpp: a thread that the system refuses is an error that says why.
// SPDX-License-Identifier: Apache-2.0
#include "base/start_thread.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(StartThread, RunsTheWork) {
  bool ran = false;
  start_thread("for a test", [&] { ran = true; }).join();
  EXPECT_TRUE(ran);
}

TEST(StartThread, ReasonsNameTheLimitAndWhatToTry) {
  EXPECT_THAT(why_not_started(EAGAIN), AllOf(HasSubstr("ulimit -u"), HasSubstr("pids.max"), HasSubstr("raise it")));
  EXPECT_THAT(why_not_started(EPERM), AllOf(HasSubstr("clone3"), HasSubstr("seccomp")));
  EXPECT_THAT(why_not_started(ENOMEM), HasSubstr("memory"));
  EXPECT_EQ(why_not_started(EINVAL), "Invalid argument");
}

// The limit counts the processes of a user and does not hold for root: the child is nobody.
TEST(StartThread, AThreadBeyondTheLimitSaysWhatItWasFor) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);
    const rlimit one{.rlim_cur = 1, .rlim_max = 1};
    if (setrlimit(RLIMIT_NPROC, &one) != 0) _exit(3);
    try {
      start_thread("for a test", [] {}).join();
      _exit(4);
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool named = text.starts_with("cannot start a thread for a test: ");
      _exit(named && text.find("`ulimit -u`: 1;") != std::string::npos ? 0 : 5);
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tutti
