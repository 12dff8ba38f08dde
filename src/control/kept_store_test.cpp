// kept_store_test.cpp: what a keeper keeps is the same after a trip to another one.
// SPDX-License-Identifier: Apache-2.0
#include "control/kept_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "base/random.hpp"

namespace tutti::control {
namespace {

using Kind = store::Request::Kind;
using Answers = std::vector<std::pair<int, StoreAnswered>>;

Answers handle(KeptStore& kept, int from, const StoreAsked& message) {
  Answers answers;
  for (const auto& [to, answer] : kept.handle(from, message)) answers.emplace_back(to, answer);
  return answers;
}

// A few keys and slots, so that requests meet: values, counters, waits, repetitions and requests given up.
StoreAsked draw(Random& random, std::uint64_t id) {
  StoreAsked asked{.kind = Kind(random.between(int(Kind::set), int(Kind::remove))),
                   .id = id,
                   .slot = static_cast<std::uint32_t>(random.below(3)),
                   .key = std::string(1, static_cast<char>('a' + random.below(4)))};
  asked.value = std::to_string(random.below(5));
  asked.has_expected = random.chance(0.5);
  if (asked.has_expected) asked.expected = std::to_string(random.below(5));
  asked.amount = random.between(-3, 3);
  return asked;
}

TEST(KeptStore, goes_on_after_a_trip_as_one_that_stayed) {
  constexpr int ranks = 3;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    KeptStore stays, travels;
    std::uint64_t id = 0;
    std::vector<StoreAsked> before[ranks];
    for (int step = 0; step < 120; ++step) {
      const int from = static_cast<int>(random.below(ranks));
      auto& own = before[from];
      const bool repeats = !own.empty() && random.chance(0.3);
      const StoreAsked asked =
          repeats ? own[own.size() - 1 - random.below(std::min<std::size_t>(own.size(), 5))] : draw(random, ++id);
      own.push_back(asked);
      if (repeats && random.chance(0.3)) own.back().kind = Kind::cancel;
      Answers expected = handle(stays, from, own.back()), got = handle(travels, from, own.back());
      const auto by_rank_and_id = [](const auto& a, const auto& b) {
        return std::pair(a.first, a.second.id) < std::pair(b.first, b.second.id);
      };
      std::ranges::sort(expected, by_rank_and_id);
      std::ranges::sort(got, by_rank_and_id);
      ASSERT_EQ(got, expected) << "seed " << seed << ", step " << step;
      if (random.chance(0.1)) travels = KeptStore::decode(travels.encode(), ranks);
    }
  }
}

TEST(KeptStore, that_arrives_damaged_is_refused) {
  KeptStore kept;
  (void)kept.handle(0, {.kind = Kind::set, .id = 1, .slot = 0, .key = "k", .value = "v"});
  (void)kept.handle(1, {.kind = Kind::get, .id = 1, .slot = 0, .key = "missing"});
  const std::vector<std::byte> whole = kept.encode();
  EXPECT_NO_THROW((void)KeptStore::decode(whole, 2));
  EXPECT_THROW((void)KeptStore::decode(whole, 1), MalformedMessage);
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = whole;
    bytes.resize(random.below(bytes.size()) + 1);
    bytes[random.below(bytes.size())] = std::byte(random.below(256));
    try {
      (void)KeptStore::decode(bytes, 2);
    } catch (const MalformedMessage&) {}
  }
}

}  // namespace
}  // namespace tutti::control
