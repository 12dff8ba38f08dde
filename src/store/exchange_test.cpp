// exchange_test.cpp: all meet, or all learn who is missing.
// SPDX-License-Identifier: Apache-2.0
#include "store/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include <tutti/error.hpp>

#include "store/memory_store.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TimePoint in(Duration wait) { return std::chrono::steady_clock::now() + wait; }
TimePoint soon() { return in(20s); }

// Each rank on a thread of its own.
void as_ranks(int size, const std::function<void(int)>& run) {
  std::vector<std::jthread> team;
  for (int rank = 0; rank < size; ++rank) team.emplace_back([&run, rank] { run(rank); });
}

template <class Failure>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& error) {
    return error.what();
  }
  return "no such error";
}

TEST(Exchange, EveryRankGetsEveryBlobInOrder) {
  for (const int size : {1, 2, 3, 7}) {
    const auto store = memory_store();
    as_ranks(size, [&](int rank) {
      const std::string blob = rank == 1 ? std::string() : std::string(static_cast<std::size_t>(rank), '\0') + "x";
      const auto all = exchange(*store, {.name = "m", .rank = rank, .size = size, .deadline = soon()}, blob);
      ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
      for (int other = 0; other < size; ++other) {
        const std::string expected =
            other == 1 ? std::string() : std::string(static_cast<std::size_t>(other), '\0') + "x";
        EXPECT_EQ(all[static_cast<std::size_t>(other)], expected);
      }
    });
  }
}

TEST(Barrier, NobodyLeavesBeforeAllHaveCome) {
  constexpr int size = 6;
  const auto store = memory_store();
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> arrived = 0;
    const std::string name = "round " + std::to_string(round);
    as_ranks(size, [&](int rank) {
      ++arrived;
      barrier(*store, {.name = name, .rank = rank, .size = size, .deadline = soon()});
      EXPECT_EQ(arrived, size);
    });
  }
}

TEST(Exchange, WhoIsMissingIsNamedToAllAndToThoseWhoComeLate) {
  constexpr int size = 5;
  const auto store = memory_store();
  const auto take_part = [&](int rank) {
    // Only rank 0 is in a hurry: the others learn from it, long before their own deadline.
    const TimePoint deadline = rank == 0 ? in(50ms) : soon();
    return error_of<Timeout>([&] { barrier(*store, {.name = "m", .rank = rank, .size = size, .deadline = deadline}); });
  };
  as_ranks(size, [&](int rank) {
    if (rank == 1 || rank == 3) return;
    EXPECT_THAT(take_part(rank), testing::AllOf(HasSubstr("rank " + std::to_string(rank) + " of 5"),
                                                HasSubstr("ranks 1, 3 of 5 are missing")));
  });
  EXPECT_THAT(take_part(3), HasSubstr("ranks 1, 3 of 5 are missing"));
}

TEST(Exchange, WithoutRankZeroTheOthersFindOutThemselves) {
  const auto store = memory_store();
  as_ranks(3, [&](int rank) {
    if (rank == 0) return;
    const std::string error =
        error_of<Timeout>([&] { barrier(*store, {.name = "m", .rank = rank, .size = 3, .deadline = in(20ms)}); });
    EXPECT_THAT(error, HasSubstr("rank 0 of 3 is missing"));
  });
}

TEST(Exchange, ALongListOfMissingRanksIsCutShort) {
  const auto store = memory_store();
  const std::string error =
      error_of<Timeout>([&] { barrier(*store, {.name = "m", .rank = 0, .size = 100, .deadline = in(5ms)}); });
  EXPECT_THAT(error, HasSubstr("15, 16 and 83 more of 100 are missing"));
}

TEST(Exchange, TwoThatClaimOneRankAreToldApartThoughTheyBringTheSame) {
  const auto store = memory_store();
  (void)exchange(*store, {.name = "m", .rank = 0, .size = 1, .deadline = soon()}, "same");
  EXPECT_THAT(error_of<InvalidArgument>(
                  [&] { (void)exchange(*store, {.name = "m", .rank = 0, .size = 1, .deadline = soon()}, "same"); }),
              HasSubstr("rank 0 of 1 is taken"));
}

TEST(Exchange, ARankOutsideTheExchangeIsTheCallersMistake) {
  const auto store = memory_store();
  for (const auto& [rank, size] : {std::pair{2, 2}, {-1, 2}, {0, 0}}) {
    EXPECT_THROW(barrier(*store, {.name = "m", .rank = rank, .size = size, .deadline = soon()}), InvalidArgument);
  }
}

TEST(Exchange, BlobsThatAreTooLargeTogetherAreRefusedOnEveryRank) {
  const auto store = memory_store();
  const std::string half(std::size_t{33} << 20, 'x');
  as_ranks(2, [&](int rank) {
    EXPECT_THROW((void)exchange(*store, {.name = "m", .rank = rank, .size = 2, .deadline = soon()}, half),
                 InvalidArgument);
  });
}

}  // namespace
}  // namespace tutti
