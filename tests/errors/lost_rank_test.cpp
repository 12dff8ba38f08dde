// lost_rank_test.cpp: a rank is killed; every other rank raises PeerLost with its name, soon, in every group that contains it.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "outcomes.hpp"
#include "ranks_as_processes.hpp"

namespace tutti::contract {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

std::string told(const std::function<void()>& call, int lost) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    call();
  } catch (const PeerLost& error) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (error.rank() != lost) return fmt::format("blamed rank {}: {}", error.rank(), error.what());
    return fmt::format("lost {:.3f} {}", seconds, error.what());
  } catch (const std::exception& error) {
    return fmt::format("threw {}", error.what());
  }
  return "nothing happened";
}

class LostRank : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LostRank, testing::Values(2, 3, 4, 8));

TEST_P(LostRank, InTheMiddleOfCallsIsNamedByAllOthers) {
  const int size = GetParam(), victim = size / 2;
  RankProcesses ranks(size);
  ranks.start([&](Group& world) -> std::string {
    std::vector<float> x(100'000, 1.0f);
    for (int i = 0; i < 5; ++i) world.all_reduce(x, {.op = Op::max});
    std::ofstream(ranks.folder() / fmt::format("ready.{}", world.rank())) << "";
    return told(
        [&] {
          for (;;) world.all_reduce(x, {.op = Op::max});
        },
        victim);
  });
  for (int rank = 0; rank < size; ++rank) ASSERT_TRUE(ranks.wait_for_file(fmt::format("ready.{}", rank), 20s));
  ranks.kill(victim);
  const auto results = ranks.collect(20s);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == victim) continue;
    const std::string& result = results[static_cast<std::size_t>(rank)];
    EXPECT_THAT(result, StartsWith("lost ")) << "rank " << rank;
    EXPECT_THAT(result, HasSubstr(fmt::format("rank {}", victim)));
  }
}

TEST(LostRank, BreaksGroupsThatContainItAndNoOthers) {
  RankProcesses ranks(4);
  ranks.start([&](Group& world) -> std::string {
    Group with = world.subgroup(std::array{0, 1, 3});
    Group without = world.subgroup(std::array{0, 1, 2});
    std::ofstream(ranks.folder() / fmt::format("ready.{}", world.rank())) << "";
    if (world.rank() == 3) pause();  // killed here
    if (world.rank() == 2) {
      std::vector<int> x{1};
      without.all_reduce(x);
      without.barrier();
      return x[0] == 3 ? "fine" : "wrong";
    }
    const std::string first = told([&] { with.barrier(); }, 3);
    if (!first.starts_with("lost ")) return first;
    std::vector<int> x{1};
    without.all_reduce(x);
    without.barrier();
    if (told([&] { world.barrier(); }, 3).find("lost 0.0") != 0) return "the world was not broken at once";
    return x[0] == 3 ? "fine" : "wrong";
  });
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(ranks.wait_for_file(fmt::format("ready.{}", rank), 20s));
  ranks.kill(3);
  const auto results = ranks.collect(20s);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(results[static_cast<std::size_t>(rank)], "fine") << "rank " << rank;
}

TEST(LostRank, IsNoticedByARankThatComputesWhenItCallsAgain) {
  RankProcesses ranks(3);
  ranks.start([&](Group& world) -> std::string {
    world.barrier();
    std::ofstream(ranks.folder() / fmt::format("ready.{}", world.rank())) << "";
    if (world.rank() == 2) pause();  // killed here
    while (!std::filesystem::exists(ranks.folder() / "killed")) usleep(1000);
    usleep(500'000);  // computes, while its service thread hears of the loss
    return told([&] { world.barrier(); }, 2);
  });
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(ranks.wait_for_file(fmt::format("ready.{}", rank), 20s));
  ranks.kill(2);
  std::ofstream(ranks.folder() / "killed") << "";
  for (const auto results = ranks.collect(20s); const int rank : {0, 1}) {
    EXPECT_THAT(results[static_cast<std::size_t>(rank)], StartsWith("lost 0.0"))
        << "rank " << rank << " should raise at once";
  }
}

}  // namespace
}  // namespace tutti::contract
