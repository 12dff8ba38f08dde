// shard_test.cpp: parts add up, pieces are found, and every sample has its rank.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include <tutti/error.hpp>
#include <tutti/shard.hpp>

namespace tutti {
namespace {

using testing::ElementsAre;
using Indices = std::vector<std::int64_t>;

TEST(ShardSizes, differ_by_one_at_most_and_add_up) {
  for (std::int64_t count = 0; count < 40; ++count) {
    for (int parts = 1; parts < 12; ++parts) {
      const Indices sizes = shard_sizes(count, parts);
      ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), count);
      ASSERT_LE(sizes.front() - sizes.back(), 1);
      std::int64_t begin = 0;
      for (int index = 0; index < parts; ++index) {
        const std::int64_t length = sizes[static_cast<std::size_t>(index)];
        ASSERT_EQ(shard_of(count, parts, index), (Range{begin, length}));
        begin += length;
      }
    }
  }
}

TEST(ShardSizes, refuse_what_cannot_be_cut) {
  EXPECT_THROW((void)shard_sizes(-1, 2), InvalidArgument);
  EXPECT_THROW((void)shard_sizes(4, 0), InvalidArgument);
  EXPECT_THROW((void)shard_of(4, 2, 2), InvalidArgument);
}

TEST(PiecesOf, finds_every_element_of_every_range) {
  const Indices sizes = {3, 0, 4, 1, 0, 2};
  std::vector<std::pair<int, std::int64_t>> place;  // of each element: its shard, and where in it
  for (std::size_t shard = 0; shard < sizes.size(); ++shard) {
    for (std::int64_t i = 0; i < sizes[shard]; ++i) place.emplace_back(static_cast<int>(shard), i);
  }
  for (std::int64_t begin = 0; begin <= 10; ++begin) {
    for (std::int64_t length = 0; begin + length <= 10; ++length) {
      std::int64_t seen = 0;
      for (const ShardPiece& piece : pieces_of(sizes, {begin, length})) {
        ASSERT_EQ(piece.begin, seen);
        for (std::int64_t i = 0; i < piece.length; ++i, ++seen) {
          ASSERT_EQ(place[static_cast<std::size_t>(begin + seen)], std::pair(piece.shard, piece.offset + i));
        }
      }
      ASSERT_EQ(seen, length);
    }
  }
  EXPECT_THROW((void)pieces_of(sizes, {8, 3}), InvalidArgument);
  EXPECT_THROW((void)pieces_of(sizes, {-1, 3}), InvalidArgument);
}

// Data sets are split by these numbers in every framework and version: they must never change.
TEST(ShuffledIndices, are_the_same_for_ever) {
  EXPECT_THAT(shuffled_indices(10, 0, 0), ElementsAre(9, 4, 7, 6, 1, 8, 5, 2, 3, 0));
  EXPECT_THAT(shuffled_indices(10, 7, 3), ElementsAre(3, 6, 1, 8, 9, 2, 7, 5, 4, 0));
}

TEST(ShuffledIndices, name_each_once_and_differ_by_seed_and_epoch) {
  const Indices first = shuffled_indices(1000, 1, 0);
  EXPECT_EQ(std::set<std::int64_t>(first.begin(), first.end()).size(), 1000u);
  EXPECT_NE(first, shuffled_indices(1000, 1, 1));
  EXPECT_NE(first, shuffled_indices(1000, 2, 0));
  EXPECT_NE(shuffled_indices(1000, 0, 1), shuffled_indices(1000, 1, 0));
  EXPECT_TRUE(shuffled_indices(0, 1, 0).empty());
}

TEST(ShuffledIndices, put_every_element_everywhere_about_equally_often) {
  std::vector<int> seen(5 * 5);
  for (std::uint64_t epoch = 0; epoch < 5000; ++epoch) {
    const Indices order = shuffled_indices(5, 11, epoch);
    for (std::size_t place = 0; place < 5; ++place) ++seen[place * 5 + static_cast<std::size_t>(order[place])];
  }
  for (const int times : seen) EXPECT_NEAR(times, 1000, 130);  // 4.6 standard deviations; the seed is fixed
}

Indices together(std::int64_t count, int size, const SampleOptions& options) {
  std::vector<Indices> ranks;
  std::size_t longest = 0;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(shard_indices(count, rank, size, options));
    longest = std::max(longest, ranks.back().size());
  }
  Indices all;  // in the order of steps
  for (std::size_t step = 0; step < longest; ++step) {
    for (const Indices& own : ranks) {
      if (step < own.size()) all.push_back(own[step]);
    }
  }
  return all;
}

TEST(ShardIndices, after_each_step_all_ranks_have_seen_what_one_would_have) {
  for (const std::int64_t count : {0, 1, 2, 5, 12, 100}) {
    for (int size = 1; size <= 7; ++size) {
      const Indices alone = together(count, 1, {.seed = 4, .epoch = 2});
      Indices kept = together(count, size, {.seed = 4, .epoch = 2, .rest = Rest::keep});
      ASSERT_EQ(kept, alone);
      Indices dropped = together(count, size, {.seed = 4, .epoch = 2, .rest = Rest::drop});
      ASSERT_EQ(dropped.size(), static_cast<std::size_t>(count / size * size));
      ASSERT_TRUE(std::equal(dropped.begin(), dropped.end(), alone.begin()));
      Indices padded = together(count, size, {.seed = 4, .epoch = 2, .rest = Rest::pad});
      ASSERT_EQ(padded.size() % static_cast<std::size_t>(size), 0u);
      ASSERT_GE(padded.size(), alone.size());
      for (std::size_t i = 0; i < padded.size(); ++i) ASSERT_EQ(padded[i], alone[i % alone.size()]);
    }
  }
}

TEST(ShardIndices, are_in_order_without_shuffling_and_refuse_ranks_that_do_not_exist) {
  EXPECT_THAT(shard_indices(7, 1, 3, {.shuffle = false, .rest = Rest::keep}), ElementsAre(1, 4));
  EXPECT_THAT(shard_indices(7, 1, 3, {.shuffle = false}), ElementsAre(1, 4, 0));
  EXPECT_THROW((void)shard_indices(7, 3, 3), InvalidArgument);
  EXPECT_THROW((void)shard_indices(-7, 0, 3), InvalidArgument);
}

}  // namespace
}  // namespace tutti
