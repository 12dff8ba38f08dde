// blocks_test.cpp: the bookkeeping of an arena's blocks, against a plain model of every granule.
// SPDX-License-Identifier: Apache-2.0
#include "shm/blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.hpp"

namespace tutti::shm {
namespace {

constexpr std::uint64_t page = Blocks::page;

TEST(RangeSet, joins_what_touches_and_counts_bytes) {
  RangeSet set;
  set.add({.offset = 0, .bytes = 10});
  set.add({.offset = 20, .bytes = 10});
  EXPECT_EQ(set.by_offset().size(), 2U);
  set.add({.offset = 10, .bytes = 10});
  EXPECT_EQ(set.by_offset(), (std::map<std::uint64_t, std::uint64_t>{{0, 30}}));
  set.remove({.offset = 5, .bytes = 5});
  EXPECT_EQ(set.by_offset(), (std::map<std::uint64_t, std::uint64_t>{{0, 5}, {10, 20}}));
  EXPECT_EQ(set.bytes(), 25U);
}

TEST(RangeSet, best_fit_takes_the_smallest_range_that_has_room_after_alignment) {
  RangeSet set;
  set.add({.offset = 0, .bytes = 100});
  set.add({.offset = 130, .bytes = 64});  // 64 bytes, but not 64 aligned ones
  set.add({.offset = 256, .bytes = 70});
  EXPECT_EQ(set.best_fit(64, 1), 130U);
  EXPECT_EQ(set.best_fit(64, 64), 256U);
  EXPECT_EQ(set.first_fit(64, 64), 0U);
  EXPECT_EQ(set.best_fit(101, 1), std::nullopt);
}

TEST(Blocks, a_large_block_begins_at_a_huge_page_and_commits_only_its_own_pages) {
  Blocks blocks({.offset = page, .bytes = 64 * Blocks::huge_page});
  const auto pages = blocks.pages_for(3 * Blocks::huge_page + 1, 128);
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages->offset, Blocks::huge_page);
  EXPECT_EQ(pages->bytes, 3 * Blocks::huge_page + page);
  EXPECT_EQ(blocks.committed_bytes(), 0U);
}

TEST(Blocks, what_is_given_back_joins_and_can_be_uncommitted_in_whole_pages) {
  Blocks blocks({.offset = page, .bytes = 16 * page});
  blocks.committed(*blocks.pages_for(4 * page, 128));
  const auto small = blocks.take(200, 128);
  const auto large = blocks.take(3 * page, 128);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(blocks.block_at(*small + 255), (Range{.offset = *small, .bytes = 256}));
  EXPECT_EQ(blocks.block_at(*small + 256)->offset, *large);
  EXPECT_EQ(blocks.give(*large + 128), std::nullopt) << "no block begins there";
  EXPECT_EQ(blocks.give(*large), 3 * page);
  const auto spare = blocks.spare_pages(page);
  ASSERT_EQ(spare.size(), 1U);
  EXPECT_EQ(spare[0], (Range{.offset = 2 * page, .bytes = 3 * page})) << "the page of the small block stays";
  blocks.uncommitted(spare[0]);
  EXPECT_EQ(blocks.committed_bytes(), page);
  EXPECT_EQ(blocks.give(*small), 256U);
  EXPECT_EQ(blocks.give(*small), std::nullopt) << "given twice";
}

// Every granule has one owner: 0 bare, −1 free, otherwise the number of a block.
class Model {
 public:
  explicit Model(std::uint64_t bytes) : owner_(bytes / Blocks::granule, 0) {}
  void change(Range range, int from, int to) {
    ASSERT_EQ(range.offset % Blocks::granule, 0U);
    for (std::uint64_t at = range.offset; at < range.offset + range.bytes; at += Blocks::granule) {
      ASSERT_EQ(owner_.at(at / Blocks::granule), from) << "at " << at;
      owner_[at / Blocks::granule] = to;
    }
  }
  [[nodiscard]] std::uint64_t committed() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(owner_, [](int owner) { return owner != 0; })) *
           Blocks::granule;
  }

 private:
  std::vector<int> owner_;
};

TEST(Blocks, no_granule_ever_has_two_owners_over_thousands_of_random_calls) {
  constexpr std::uint64_t room = 256 * page;
  Random random(7);
  Blocks blocks({.offset = page, .bytes = room - page});
  Model model(room);
  std::map<std::uint64_t, std::pair<std::uint64_t, int>> taken;
  for (int step = 1; step < 6000; ++step) {
    const std::uint64_t bytes = random.below(random.chance(0.1) ? 20 * page : 2000);
    const std::uint64_t alignment = std::uint64_t{1} << random.below(14);
    const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + 127) / 128 * 128;
    if (taken.empty() || random.chance(0.55)) {
      auto offset = blocks.take(bytes, alignment);
      if (!offset) {
        const auto pages = blocks.pages_for(bytes, alignment);
        if (!pages) continue;  // full
        model.change(*pages, 0, -1);
        blocks.committed(*pages);
        offset = blocks.take(bytes, alignment);
      }
      ASSERT_TRUE(offset);
      EXPECT_EQ(*offset % alignment, 0U);
      model.change({.offset = *offset, .bytes = rounded}, -1, step);
      taken.emplace(*offset, std::pair(rounded, step));
    } else if (random.chance(0.9)) {
      const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random.below(taken.size())));
      const auto [size, number] = victim->second;
      EXPECT_EQ(blocks.give(victim->first), size);
      model.change({.offset = victim->first, .bytes = size}, number, -1);
      taken.erase(victim);
    } else {
      for (const Range pages : blocks.spare_pages(page)) {
        blocks.uncommitted(pages);
        model.change(pages, -1, 0);
      }
    }
    ASSERT_EQ(blocks.committed_bytes(), model.committed());
    ASSERT_FALSE(testing::Test::HasFatalFailure());
  }
}

}  // namespace
}  // namespace tutti::shm
