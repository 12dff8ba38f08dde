// stopped_rank_test.cpp: ranks that are stopped, or busy, are lost only if they are silent for long: at any time of their lives.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ranks_as_processes.hpp"

namespace tutti::contract {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

/// Calls until one fails or the file "enough" is there, which rank 0 sees for all; says how long the last call took, and its error.
std::string sum_until_told(Group& world, const std::filesystem::path& folder) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (std::vector<int> x;;) {
      const bool is_enough = world.rank() == 0 && std::filesystem::exists(folder / "enough");
      x.assign(1000, is_enough ? 1000 : 1);
      world.all_reduce(x);
      if (x[0] != world.size() && x[0] != world.size() + 999) return "wrong data";
      if (x[0] > world.size()) return "fine";
    }
  } catch (const std::exception& error) {
    return fmt::format("{:.1f} s: {}", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
                       error.what());
  }
}

TEST(StoppedRank, WithinItsFirstMomentsIsNoticedAsSoonAsLater) {
  RankProcesses ranks(3);
  ranks.start([&](Group& world) -> std::string {
    ranks.note("ready", world.rank());
    return sum_until_told(world, ranks.folder());
  });
  ASSERT_TRUE(ranks.wait_for_file("ready.1", 30s));  // it has just come into being
  ranks.signal(1, SIGSTOP);
  for (const int rank : {0, 2}) {  // they bear 5 s of silence, and take a little more on a busy machine
    ASSERT_TRUE(ranks.wait_for_file(fmt::format("result.{}", rank), 30s)) << "rank " << rank;
  }
  ranks.kill(1);
  const auto results = ranks.collect(20s);
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_THAT(results[rank], HasSubstr("rank 1 is lost: its process is stopped")) << "rank " << rank;
  }
}

TEST(StoppedRank, ThatHasYetToReadWhatWasSentKeepsNobodyFromLeaving) {
  RankProcesses ranks(3);
  ranks.start([&](Group& world) -> std::string {
    std::vector<std::vector<char>> data(200, std::vector<char>(60'000));
    try {
      world.barrier();
      if (world.rank() == 1) ::raise(SIGSTOP);
      std::vector<Work> works;
      for (auto& each : data) works.push_back(world.isend(each, 1));
      for (Work& work : works) work.wait();
      world.barrier();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "fine";
  });
  for (const int rank : {0, 2})
    ASSERT_TRUE(ranks.wait_for_file(fmt::format("result.{}", rank), 30s)) << "rank " << rank;
  ranks.kill(1);
  const auto results = ranks.collect(20s);
  for (const std::size_t rank : {0u, 2u}) EXPECT_THAT(results[rank], HasSubstr("rank 1 is lost"));
}

TEST(StoppedRank, WithoutRoomForThatMessagesAreTakenBackKeepsNobodyFromLeaving) {
  constexpr int count =
      40'000;  // announced, once there is no more credit: more than the channel to a peer has room for
  RankProcesses ranks(3);
  ranks.start([&](Group& world) -> std::string {
    const std::vector<char> data(100);
    try {
      world.barrier();
      if (world.rank() == 1) ::raise(SIGSTOP);
      std::vector<Work> works;
      for (int i = 0; i < count; ++i) works.push_back(world.isend(data, 1));
      for (Work& work : works) work.wait();
      world.barrier();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "fine";
  });
  for (const int rank : {0, 2})
    ASSERT_TRUE(ranks.wait_for_file(fmt::format("result.{}", rank), 30s)) << "rank " << rank;
  ranks.kill(1);
  const auto results = ranks.collect(20s);
  for (const std::size_t rank : {0u, 2u}) EXPECT_THAT(results[rank], HasSubstr("rank 1 is lost"));
}

TEST(StoppedRank, ThatIsContinuedInTimeGoesOnUnharmed) {
  RankProcesses ranks(3);
  ranks.start([&](Group& world) -> std::string {
    ranks.note("ready", world.rank());
    return sum_until_told(world, ranks.folder());
  });
  ASSERT_TRUE(ranks.wait_for_file("ready.2", 30s));
  for (int times = 0; times < 2; ++times) {
    ranks.signal(2, SIGSTOP);
    std::this_thread::sleep_for(1s);
    ranks.signal(2, SIGCONT);
    std::this_thread::sleep_for(300ms);
  }
  std::ofstream(ranks.folder() / "enough") << "";
  EXPECT_THAT(ranks.collect(40s), testing::Each("fine"));
}

TEST(BusyRank, ThatReceivesTwentyThousandMessagesIsNotLost) {
  constexpr int count = 20'000;
  RankProcesses ranks(3);
  ranks.start([&](Group& world) -> std::string {
    std::vector<std::vector<int>> data(count, std::vector<int>(16, world.rank()));
    std::vector<Work> works;
    try {
      for (int i = 0; i < count; ++i) {
        auto& each = data[static_cast<std::size_t>(i)];
        if (world.rank() == 0) {
          works.push_back(world.irecv(each, 1 + i % 2, {.tag = static_cast<std::uint32_t>(i)}));
        } else if (i % 2 == world.rank() - 1) {
          each.assign(16, i);
          works.push_back(world.isend(each, 0, {.tag = static_cast<std::uint32_t>(i)}));
        }
      }
      for (Work& work : works) work.wait();
      world.barrier();
    } catch (const std::exception& error) {
      return error.what();
    }
    for (int i = 0; world.rank() == 0 && i < count; ++i) {
      if (data[static_cast<std::size_t>(i)] != std::vector<int>(16, i))
        return fmt::format("wrong data in message {}", i);
    }
    return "fine";
  });
  EXPECT_THAT(ranks.collect(100s), testing::Each("fine"));
}

}  // namespace
}  // namespace tutti::contract
