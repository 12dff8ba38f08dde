// life_test.cpp: what the system knows of a child: running, stopped, ended, or somebody else by now.
// SPDX-License-Identifier: Apache-2.0
#include "group/life.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace tutti {
namespace {

using control::Life;

ProcessIdentity identity_of_child(pid_t child) {
  ProcessIdentity identity = own_identity();
  identity.pid = child;
  for (std::uint64_t later = 0; later < 1000; ++later) {  // it started in one of the next ticks
    if (life_of(identity, own_identity()) != Life::ended) return identity;
    ++identity.started_ticks;
  }
  return identity;
}

TEST(Life, of_this_process_is_running_and_survives_the_trip_as_text) {
  const ProcessIdentity self = own_identity();
  ASSERT_TRUE(self.is_known());
  EXPECT_EQ(life_of(identity_from_text(to_text(self)), self), Life::running);
}

TEST(Life, of_a_child_is_known_from_running_to_ended) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const ProcessIdentity identity = identity_of_child(child), self = own_identity();
  EXPECT_EQ(life_of(identity, self), Life::running);
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(life_of(identity, self), Life::stopped);
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(life_of(identity, self), Life::ended) << "a zombie runs no more";
  waitpid(child, &status, 0);
  EXPECT_EQ(life_of(identity, self), Life::ended);
}

TEST(Life, of_a_process_whose_first_thread_has_ended_is_running_as_long_as_another_one_runs) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread only
  }
  const ProcessIdentity identity = identity_of_child(child), self = own_identity();
  const std::string path = fmt::format("/proc/{}/stat", child);
  for (std::string line; line.find(") Z ") == std::string::npos;) {  // until the first thread has ended
    std::ifstream file(path);
    ASSERT_TRUE(std::getline(file, line));
  }
  EXPECT_EQ(life_of(identity, self), Life::running);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Life, of_a_process_out_of_sight_or_with_another_start_is_not_taken_for_it) {
  const ProcessIdentity self = own_identity();
  ProcessIdentity elsewhere = self, later = self;
  elsewhere.pid_namespace += 1;
  EXPECT_EQ(life_of(elsewhere, self), Life::unknown);
  later.started_ticks += 1;
  EXPECT_EQ(life_of(later, self), Life::ended) << "the id was used again";
  EXPECT_EQ(life_of(identity_from_text("nonsense"), self), Life::unknown);
}

/// What `body` returns in a child with namespaces of its own; -1 where the system refuses these.
int in_namespaces(int flags, int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    if (unshare(flags) != 0) _exit(77);
    const pid_t grandchild = fork();  // only children enter a new PID namespace
    if (grandchild == 0) _exit(body());
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 77 ? WEXITSTATUS(status) : -1;
}

TEST(Life, of_nobody_is_known_where_proc_shows_another_pid_namespace) {
  const int got = in_namespaces(CLONE_NEWUSER | CLONE_NEWPID, [] { return own_identity().is_known() ? 1 : 0; });
  if (got < 0) GTEST_SKIP() << "the system refuses namespaces";
  EXPECT_EQ(got, 0) << "live ranks would be taken for processes that have ended";
}

TEST(Life, of_another_users_process_that_proc_hides_is_not_taken_for_an_end) {
  if (geteuid() != 0) GTEST_SKIP() << "mounts need root";
  const int got = in_namespaces(CLONE_NEWPID | CLONE_NEWNS, [] {
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) return 77;
    const ProcessIdentity roots = own_identity();
    const pid_t child = fork();
    if (child == 0) {
      if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
      ProcessIdentity self = roots;
      self.pid = getpid();
      if (access(fmt::format("/proc/{}/stat", roots.pid).c_str(), F_OK) == 0) _exit(2);
      _exit(life_of(roots, self) == Life::unknown ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  });
  if (got < 0) GTEST_SKIP() << "the system refuses namespaces or mounts";
  EXPECT_EQ(got, 0);
}

}  // namespace
}  // namespace tutti
