// round_record_test.cpp: the records of several ranks, combined in any order.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/round_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tutti::mpi {
namespace {

RoundRecord record_of(int rank, std::uint64_t number, Verb verb = Verb::all_reduce) {
  return {.lowest = number,
          .highest = number,
          .signature = {.sequence = number, .verb = verb, .dtype = DType::float32, .count = 2},
          .rank = rank};
}

/// In the order given, and in all others.
template <class Check>
void for_each_order(std::vector<RoundRecord> records, Check check) {
  std::vector<std::size_t> order(records.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    RoundRecord result = records[order[0]];
    for (std::size_t i = 1; i < order.size(); ++i) combine(result, records[order[i]]);
    check(result);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RoundRecord, RanksThatMakeTheSameCallAgree) {
  for_each_order({record_of(0, 7), record_of(1, 7), record_of(2, 7)}, [](const RoundRecord& result) {
    EXPECT_EQ(result.lowest, 7u);
    EXPECT_EQ(result.highest, 7u);
    EXPECT_EQ(result.other_rank, -1);
  });
}

TEST(RoundRecord, ADifferenceIsKeptWithBothSidesInWhateverOrderRecordsMeet) {
  for_each_order({record_of(0, 7), record_of(1, 7), record_of(2, 7, Verb::broadcast), record_of(3, 7)},
                 [](const RoundRecord& result) {
                   const bool first_is_odd = result.rank == 2;
                   EXPECT_TRUE(first_is_odd || result.other_rank == 2);
                   EXPECT_NE(result.signature, result.other);
                   EXPECT_EQ((first_is_odd ? result.signature : result.other).verb, Verb::broadcast);
                 });
}

TEST(RoundRecord, CallsOfDifferentNumbersAreNotCompared) {
  for_each_order({record_of(0, 7), record_of(1, 8, Verb::broadcast), record_of(2, 8, Verb::barrier)},
                 [](const RoundRecord& result) {
                   EXPECT_EQ(result.lowest, 7u);
                   EXPECT_EQ(result.highest, 8u);
                 });
}

TEST(RoundRecord, ElementsThatTravelAlongAreReduced) {
  std::vector<RoundRecord> records;
  for (int rank = 0; rank < 3; ++rank) {
    RoundRecord record = record_of(rank, 7);
    const std::array<float, 2> values{static_cast<float>(rank), 10};
    record.fused = Fused::reduced;
    record.dtype = DType::float32;
    record.bytes = sizeof values;
    std::memcpy(record.payload.data(), values.data(), sizeof values);
    records.push_back(record);
  }
  for_each_order(records, [](const RoundRecord& result) {
    std::array<float, 2> sums{};
    std::memcpy(sums.data(), result.payload.data(), sizeof sums);
    EXPECT_EQ(sums[0], 3);
    EXPECT_EQ(sums[1], 30);
  });
}

TEST(RoundRecord, ElementsOfDifferentRanksAreJoined) {
  std::vector<RoundRecord> records;
  for (int rank = 0; rank < 3; ++rank) {
    RoundRecord record = record_of(rank, 7, Verb::all_gather);
    record.fused = Fused::joined;
    record.bytes = 3;
    record.payload[static_cast<std::size_t>(rank)] = static_cast<std::byte>(rank + 1);
    records.push_back(record);
  }
  for_each_order(records, [](const RoundRecord& result) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(result.payload[i], static_cast<std::byte>(i + 1));
  });
}

}  // namespace
}  // namespace tutti::mpi
