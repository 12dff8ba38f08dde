// forked_child_test.cpp: a child that a rank forks closes what it inherited, and raises when it uses a group.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "outcomes.hpp"
#include "ranks_as_processes.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;

TEST(ForkedChild, RaisesOnUseWhileTheJobGoesOn) {
  RankProcesses ranks(2);
  ranks.start([&](Group& world) -> std::string {
    world.barrier();
    const pid_t child = fork();
    if (child == 0) {
      const Outcome outcome = outcome_of([&] { world.barrier(); });
      const bool clear =
          outcome.kind == Outcome::Kind::invalid_argument && outcome.text.find("fork") != std::string::npos;
      world = Group();  // the destructor must neither hang nor speak for the parent
      _exit(clear ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    std::vector<int> x{1};
    world.all_reduce(x);
    if (status != 0) return "the child's call did not raise as it should";
    return x[0] == 2 ? "fine" : "wrong";
  });
  for (const std::string& result : ranks.collect(20s)) EXPECT_EQ(result, "fine");
}

}  // namespace
}  // namespace tutti::contract
