// loopback_test.cpp: loopback as it is here, and in a network namespace in which it is down.
// SPDX-License-Identifier: Apache-2.0
#include "wire/loopback.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <tutti/error.hpp>

#include "base/sanitizers.hpp"
#include "wire/socket.hpp"

namespace tutti::wire {
namespace {

using testing::HasSubstr;

constexpr int not_permitted = 77;

// Runs `look` in a child whose network namespace is new; the status it exits with is what `look` gives.
template <class Look>
int in_new_network(Look look) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(not_permitted);
    _exit(look());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Loopback, WorksHereAndHasAnIdentityThatStays) {
  EXPECT_EQ(loopback_problem(), "");
  EXPECT_THAT(network_identity(), HasSubstr("net:["));
  EXPECT_EQ(network_identity(), network_identity());
}

#if !TUTTI_THREAD_SANITIZER  // its own thread keeps a process from going to another namespace
TEST(Loopback, OfANewNetworkNamespaceIsAnotherAndDown) {
  const std::string here = network_identity();
  const int seen = in_new_network([&] {
    if (network_identity() == here) return 1;
    const std::string problem = loopback_problem();
    if (problem.find("Network is unreachable") == std::string::npos) return 2;
    return problem.find("ip link set lo up") == std::string::npos ? 3 : 0;
  });
  if (seen == not_permitted) GTEST_SKIP() << "this user may not make network namespaces";
  EXPECT_EQ(seen, 0);
}

TEST(Loopback, ThatIsDownFailsAConnectionAtOnce) {
  const int seen = in_new_network([] {
    const TimePoint start = std::chrono::steady_clock::now();
    try {
      (void)connect(Address::loopback().with_port(1), start + std::chrono::seconds(15));
      return 1;
    } catch (const RendezvousError& error) {
      if (std::string(error.what()).find("loopback") == std::string::npos) return 2;
    }
    return std::chrono::steady_clock::now() - start < std::chrono::seconds(5) ? 0 : 3;
  });
  if (seen == not_permitted) GTEST_SKIP() << "this user may not make network namespaces";
  EXPECT_EQ(seen, 0);
}
#endif

}  // namespace
}  // namespace tutti::wire
