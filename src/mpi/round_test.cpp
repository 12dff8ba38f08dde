// round_test.cpp: the steps of a round bring every rank's record to every rank, in the order of ranks, whatever their number is.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/round.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace tutti::mpi {
namespace {

/// Their sum depends on the order in which they are added: large numbers swallow small ones.
float contribution(int rank) { return rank % 3 == 0 ? 1e8F : static_cast<float>(rank + 1); }

RoundRecord record_of(int rank) {
  RoundRecord record{.lowest = 4, .highest = 4, .rank = rank, .fused = Fused::reduced, .dtype = DType::float32};
  const float value = contribution(rank);
  record.bytes = sizeof value;
  std::memcpy(record.payload.data(), &value, sizeof value);
  return record;
}

float sum_in(const RoundRecord& record) {
  float sum = 0;
  std::memcpy(&sum, record.payload.data(), sizeof sum);
  return sum;
}

/// Ranks that send and receive through queues, one for each pair: as MPI keeps the order between two ranks.
class Ranks {
 public:
  explicit Ranks(int size) {
    for (int rank = 0; rank < size; ++rank) ranks_.push_back({round_steps(rank, size), 0, false, record_of(rank)});
  }
  /// False: nobody can go on.
  bool advance() {
    bool moved = false;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) moved |= advance(rank);
    return moved;
  }
  [[nodiscard]] bool are_done() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.step == rank.steps.size(); }) &&
           std::ranges::all_of(queues_, [](const auto& entry) { return entry.second.empty(); });
  }
  [[nodiscard]] const RoundRecord& record(int rank) const { return ranks_[static_cast<std::size_t>(rank)].record; }

 private:
  struct Rank {
    std::vector<RoundStep> steps;
    std::size_t step = 0;
    bool has_sent = false;
    RoundRecord record;
  };

  bool advance(int index) {
    Rank& rank = ranks_[static_cast<std::size_t>(index)];
    if (rank.step == rank.steps.size()) return false;
    const RoundStep& step = rank.steps[rank.step];
    if (step.sends() && !std::exchange(rank.has_sent, true)) queues_[{index, step.peer}].push_back(rank.record);
    if (step.receives()) {
      auto& queue = queues_[{step.peer, index}];
      if (queue.empty()) return false;
      step.combine_with(rank.record, queue.front());
      queue.pop_front();
    }
    rank.has_sent = false;
    ++rank.step;
    return true;
  }

  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<RoundRecord>> queues_;
};

TEST(Round, EveryRankGetsTheSumInTheSameBits) {
  for (int size = 2; size <= 40; ++size) {
    Ranks ranks(size);
    while (ranks.advance()) {}
    ASSERT_TRUE(ranks.are_done()) << size << " ranks";
    for (int rank = 1; rank < size; ++rank)
      ASSERT_EQ(sum_in(ranks.record(rank)), sum_in(ranks.record(0))) << "rank " << rank << " of " << size;
    EXPECT_EQ(ranks.record(size - 1).other_rank, -1);
  }
}

TEST(Round, TakesTwoStepsMoreWhereTheSizeIsNoPowerOfTwo) {
  EXPECT_EQ(round_steps(0, 2).size(), 1u);
  EXPECT_EQ(round_steps(5, 8).size(), 3u);
  EXPECT_EQ(round_steps(1, 3).size(), 3u);  // takes, swaps, gives
  EXPECT_EQ(round_steps(0, 3).size(), 2u);  // gives, is given
  EXPECT_EQ(round_steps(2, 3).size(), 1u);
}

}  // namespace
}  // namespace tutti::mpi
