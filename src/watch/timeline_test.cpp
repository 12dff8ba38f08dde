// timeline_test.cpp: records of several hosts in one time; words for people.
// SPDX-License-Identifier: Apache-2.0
#include "watch/timeline.hpp"

#include <gtest/gtest.h>

#include <array>

#include <tutti/error.hpp>

#include "watch/words.hpp"

namespace tutti::watch {
namespace {

TEST(Timeline, AlignsTheClocksOfHosts) {
  constexpr std::int64_t off = 4'000'000;
  std::vector<RankView> ranks;
  for (int r = 0; r < 2; ++r) {
    RankView rank;
    rank.snapshot = {.host = r == 0 ? "a" : "b", .rank = r, .size = 2};
    rank.snapshot.groups.push_back({.id = 5, .size = 2, .rank = r, .members = "world"});
    for (std::int64_t i = 0; i < 10; ++i) {
      const std::int64_t begin = i * 1'000'000, late = (i + r) % 2 * 2000, shift = r == 0 ? 0 : off;
      rank.snapshot.calls.push_back({.number = static_cast<std::uint64_t>(i + 1),
                                     .sequence = static_cast<std::uint64_t>(i),
                                     .verb = Verb::barrier,
                                     .state = record::State::ended,
                                     .started_ns = begin + late + shift,
                                     .ended_ns = begin + 6000 + shift});
    }
    ranks.push_back(rank);
  }
  const Timeline timeline(ranks);
  EXPECT_LE(std::abs(timeline.ranks()[1].offset.ns + off), timeline.ranks()[1].offset.within);
  EXPECT_LE(timeline.ranks()[1].offset.within, 6000);
  EXPECT_EQ(timeline.world_rank(5, 1), 1);
  EXPECT_FALSE(timeline.world_rank(6, 0));
}

TEST(Timeline, AFolderWithoutRecordsIsAMistake) {
  EXPECT_THROW(Timeline::of_folder("/no/such/folder"), InvalidArgument);
  EXPECT_THROW(Timeline::of_folder("/proc/self"), InvalidArgument);
}

TEST(Words, AreThoseOfPeople) {
  EXPECT_EQ(say_ranks(std::array{2}), "rank 2");
  EXPECT_EQ(say_ranks(std::array{0, 1, 3}), "ranks 0, 1 and 3");
  EXPECT_EQ(say_time(3'210'000'000), "3.2 s");
  EXPECT_EQ(say_time(12'000), "12 µs");
  EXPECT_EQ(say_bytes(1536), "1.5 KiB");
  EXPECT_EQ(say_count(12'345), "12.3 k");
}

}  // namespace
}  // namespace tutti::watch
