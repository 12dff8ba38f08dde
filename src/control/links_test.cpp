// links_test.cpp: the network of the living stays in one piece, with few links each.
// SPDX-License-Identifier: Apache-2.0
#include "control/links.hpp"

#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "control/floods.hpp"

namespace tutti::control {
namespace {

TEST(WantedLinks, are_few_and_mutual_while_all_live) {
  for (int size = 1; size <= 70; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const std::set<int> wanted = wanted_links(rank, size, {});
      EXPECT_LE(wanted.size(), 2u * static_cast<unsigned>(std::bit_width(static_cast<unsigned>(size))));
      EXPECT_FALSE(wanted.contains(rank));
      for (const int peer : wanted) EXPECT_TRUE(wanted_links(peer, size, {}).contains(rank));
    }
  }
}

TEST(WantedLinks, join_all_the_living_whoever_is_dead) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const int size = static_cast<int>(random.between(2, 40));
    std::set<int> dead;
    for (int rank = 0; rank < size; ++rank) {
      if (random.chance(0.6)) dead.insert(rank);
    }
    std::set<int> reached, frontier;
    for (int rank = 0; rank < size && frontier.empty(); ++rank) {
      if (!dead.contains(rank)) frontier.insert(rank);
    }
    while (!frontier.empty()) {
      const int rank = *frontier.begin();
      frontier.erase(frontier.begin());
      reached.insert(rank);
      for (const int peer : wanted_links(rank, size, dead)) {
        EXPECT_FALSE(dead.contains(peer));
        if (!reached.contains(peer)) frontier.insert(peer);
      }
    }
    EXPECT_EQ(reached.size() + dead.size(), static_cast<std::size_t>(size));
  }
}

TEST(NextHop, comes_to_every_rank_in_logarithmically_many_steps) {
  for (const int size : {2, 3, 16, 33, 100}) {
    std::vector<Links> links;
    for (int rank = 0; rank < size; ++rank) {
      links.emplace_back(rank, size);
      for (const int peer : links.back().wanted()) links.back().add(peer, TimePoint{});
    }
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        int at = from, before = from, hops = 0;
        while (at != to) {
          const int next = links[static_cast<std::size_t>(at)].next_hop(to, before);
          before = std::exchange(at, next);
          ASSERT_LE(++hops, std::bit_width(static_cast<unsigned>(size)));
        }
      }
    }
  }
}

TEST(Links, that_are_banned_are_replaced_and_never_come_back) {
  Links links(0, 8);
  for (const int peer : links.wanted()) links.add(peer, TimePoint{});
  EXPECT_FALSE(links.has(3));
  links.ban(2);
  EXPECT_FALSE(links.usable(2));
  EXPECT_THAT(links.wanted(), testing::Contains(3)) << "the next beyond it";
}

TEST(FloodLog, takes_each_number_of_an_origin_once_in_nearly_any_order) {
  FloodLog log;
  for (const std::uint64_t number : {1, 2, 5, 4, 3, 60}) EXPECT_TRUE(log.is_new(0, number)) << number;
  for (const std::uint64_t number : {1, 2, 3, 4, 5, 60}) EXPECT_FALSE(log.is_new(0, number)) << number;
  EXPECT_TRUE(log.is_new(1, 1));
  EXPECT_TRUE(log.is_new(0, 59));
  EXPECT_TRUE(log.is_new(0, 1000));
  EXPECT_FALSE(log.is_new(0, 10));  // too late to be told apart
  EXPECT_FALSE(log.is_new(0, 0));
}

TEST(FloodLog, keeps_a_bounded_number_of_bytes) {
  FloodLog log;
  for (int i = 0; i < 2000; ++i) log.keep(std::vector<std::byte>(10));
  EXPECT_EQ(log.recent().size(), FloodLog::recent_count_max);
  for (int i = 0; i < 100; ++i) log.keep(std::vector<std::byte>(60'000));
  std::size_t bytes = 0;
  for (const auto& flood : log.recent()) bytes += flood.size();
  EXPECT_LE(bytes, FloodLog::recent_bytes_max);
}

}  // namespace
}  // namespace tutti::control
