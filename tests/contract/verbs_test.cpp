// verbs_test.cpp: the blocking calls as users write them: ranges, views, results by value.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <vector>

#include <tutti/error.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

class Verbs : public InWorld {};

int sum_of_ranks(const Group& group) { return group.size() * (group.size() - 1) / 2; }

/// 10 × rank, 10 × rank + 1, …
std::vector<int> numbered(int rank, int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 10 * rank);
  return values;
}

TEST_P(Verbs, AllReduceSumsAVectorInPlace) {
  on_every_rank([](Group& world) {
    std::vector<float> grads(5, static_cast<float>(world.rank()));
    world.all_reduce(grads);
    EXPECT_THAT(grads, Each(static_cast<float>(sum_of_ranks(world))));
  });
}

TEST_P(Verbs, AllReduceTakesAnotherReductionAndASeparateResult) {
  on_every_rank([](Group& world) {
    const std::vector<double> in(3, world.rank() + 1.0);
    std::vector<double> out(3);
    world.all_reduce(in, out, {.op = Op::mean, .timeout = std::chrono::seconds(30)});
    EXPECT_THAT(out, Each((world.size() + 1) / 2.0));
    EXPECT_THAT(in, Each(world.rank() + 1.0));
  });
}

TEST_P(Verbs, ReduceGivesTheResultToTheRootAlone) {
  on_every_rank([](Group& world) {
    const int root = world.size() - 1;
    std::array<int, 4> data;
    data.fill(world.rank());
    world.reduce(data, {.root = root, .op = Op::max});
    EXPECT_THAT(data, Each(world.rank() == root ? world.size() - 1 : world.rank()));
    std::array<int, 4> out{};
    data.fill(1);
    world.reduce(data, out, {.root = root});
    EXPECT_THAT(out, Each(world.rank() == root ? world.size() : 0));
  });
}

TEST_P(Verbs, BroadcastGivesTheRootsArrayToAll) {
  on_every_rank([](Group& world) {
    std::vector<int> data = numbered(world.rank(), 3);
    world.broadcast(data, {.root = world.size() / 2});
    EXPECT_EQ(data, numbered(world.size() / 2, 3));
  });
}

TEST_P(Verbs, BroadcastFromNeedsNoSizeOnTheOtherRanks) {
  on_every_rank([](Group& world) {
    std::vector<int> data;
    if (world.rank() == 0) data = numbered(3, 1000);
    const std::vector<int> all = world.broadcast_from(data);
    EXPECT_EQ(all, numbered(3, 1000));
  });
}

TEST_P(Verbs, AllGatherReturnsEverybodysElementsInRankOrder) {
  on_every_rank([](Group& world) {
    const std::array<int, 2> mine{world.rank(), -world.rank()};
    const std::vector<int> all = world.all_gather(mine);
    std::vector<int> expected;
    for (int rank = 0; rank < world.size(); ++rank) expected.insert(expected.end(), {rank, -rank});
    EXPECT_EQ(all, expected);
    std::vector<int> out(expected.size());
    world.all_gather(mine, out);
    EXPECT_EQ(out, expected);
  });
}

TEST_P(Verbs, AllGatherJoinsArraysOfDifferentLengths) {
  on_every_rank([](Group& world) {
    const std::vector<int> mine = numbered(world.rank(), world.rank());
    std::vector<int> expected;
    Sizes sizes;
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto theirs = numbered(rank, rank);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
      sizes.push_back(rank);
    }
    EXPECT_EQ(world.all_gather(mine, {.uneven = true}), expected);
    EXPECT_EQ(world.all_gather(mine, {.sizes = sizes}), expected);
  });
}

TEST_P(Verbs, AllGatherRefusesAnArrayThatTheExchangedSizesDoNotFit) {
  on_every_rank([](Group& world) {
    Group group = world.split(0);
    const std::vector<int> mine(static_cast<std::size_t>(world.rank()) + 1, world.rank());
    std::vector<int> too_short(mine.size() * static_cast<std::size_t>(world.size()) / 2);
    EXPECT_THROW(group.all_gather(mine, too_short, {.uneven = true}), Error);
    world.barrier();
  });
}

TEST_P(Verbs, GatherReturnsEverythingAtTheRootAndNothingElsewhere) {
  on_every_rank([](Group& world) {
    const std::vector<int> mine(2, world.rank());
    const std::vector<int> all = world.gather(mine, {.root = world.size() - 1});
    if (world.rank() != world.size() - 1) {
      EXPECT_THAT(all, IsEmpty());
    } else {
      ASSERT_EQ(all.size(), 2u * static_cast<unsigned>(world.size()));
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int>(i / 2));
    }
  });
}

TEST_P(Verbs, GatherAsksForTheLengthsIfTheyDiffer) {
  on_every_rank([](Group& world) {
    const std::vector<int> mine(static_cast<std::size_t>(world.size() - world.rank()), world.rank());
    const std::vector<int> all = world.gather(mine, {.uneven = true});
    std::vector<int> expected;
    for (int rank = 0; rank < world.size(); ++rank)
      expected.insert(expected.end(), static_cast<std::size_t>(world.size() - rank), rank);
    EXPECT_EQ(all, world.rank() == 0 ? expected : std::vector<int>());
  });
}

TEST_P(Verbs, ReduceScatterReturnsThisRanksShareOfTheSum) {
  on_every_rank([](Group& world) {
    std::vector<int> data(3 * static_cast<std::size_t>(world.size()));
    std::iota(data.begin(), data.end(), 0);
    const int first = 3 * world.rank() * world.size();
    EXPECT_THAT(world.reduce_scatter(data), ElementsAre(first, first + world.size(), first + 2 * world.size()));
    std::vector<int> out(3);
    world.reduce_scatter(data, out, {.op = Op::max});
    EXPECT_THAT(out, ElementsAre(3 * world.rank(), 3 * world.rank() + 1, 3 * world.rank() + 2));
  });
}

TEST_P(Verbs, ReduceScatterTakesUnevenSizes) {
  on_every_rank([](Group& world) {
    Sizes sizes;
    for (int rank = 0; rank < world.size(); ++rank) sizes.push_back(rank + 1);
    const std::vector<int> data(static_cast<std::size_t>(world.size() * (world.size() + 1) / 2), 2);
    const std::vector<int> mine = world.reduce_scatter(data, {.sizes = sizes});
    EXPECT_EQ(mine, std::vector<int>(static_cast<std::size_t>(world.rank()) + 1, 2 * world.size()));
  });
}

TEST_P(Verbs, ScatterFromGivesEachRankItsPartOfWhatOnlyTheRootHas) {
  on_every_rank([](Group& world) {
    std::vector<int> data;
    if (world.rank() == 0) data = numbered(0, 2 * world.size());
    EXPECT_THAT(world.scatter_from(data), ElementsAre(2 * world.rank(), 2 * world.rank() + 1));
    std::vector<int> out(2);
    world.scatter(data, out);
    EXPECT_THAT(out, ElementsAre(2 * world.rank(), 2 * world.rank() + 1));
  });
}

TEST_P(Verbs, ScatterFromTakesTheRootsSizes) {
  on_every_rank([](Group& world) {
    std::vector<int> data;
    Sizes sizes;
    for (int rank = 0; rank < world.size() && world.rank() == 0; ++rank) {
      sizes.push_back(rank);
      data.insert(data.end(), static_cast<std::size_t>(rank), rank);
    }
    EXPECT_EQ(world.scatter_from(data, {.sizes = sizes}),
              std::vector<int>(static_cast<std::size_t>(world.rank()), world.rank()));
  });
}

TEST_P(Verbs, AllToAllTransposesRanksAndBlocks) {
  on_every_rank([](Group& world) {
    std::vector<int> data, expected;
    for (int peer = 0; peer < world.size(); ++peer) {
      data.push_back(100 * world.rank() + peer);
      expected.push_back(100 * peer + world.rank());
    }
    EXPECT_EQ(world.all_to_all(data), expected);
    world.all_to_all(data, data);
    EXPECT_EQ(data, expected);
  });
}

TEST_P(Verbs, AllToAllSendsEachPeerAsMuchAsTheSizesSay) {
  on_every_rank([](Group& world) {
    std::vector<int> data, expected;
    Sizes split, received;
    for (int peer = 0; peer < world.size(); ++peer) {
      split.push_back(peer);
      received.push_back(world.rank());
      data.insert(data.end(), static_cast<std::size_t>(peer), world.rank());
      expected.insert(expected.end(), static_cast<std::size_t>(world.rank()), peer);
    }
    EXPECT_EQ(world.all_to_all(data, {.split_sizes = split}), expected);
    EXPECT_EQ(world.all_to_all(data, {.split_sizes = split, .recv_sizes = received}), expected);
  });
}

TEST_P(Verbs, ScansGiveThePrefixWithAndWithoutTheRankItself) {
  on_every_rank([](Group& world) {
    std::vector<int> data{world.rank() + 1};
    world.scan(data);
    EXPECT_THAT(data, ElementsAre((world.rank() + 1) * (world.rank() + 2) / 2));
    data = {world.rank() + 1};
    std::vector<int> before(1);
    world.exscan(data, before, {.op = Op::product});
    int factorial = 1;
    for (int i = 1; i <= world.rank(); ++i) factorial *= i;
    EXPECT_THAT(before, ElementsAre(factorial));
    world.exscan(data);
    EXPECT_THAT(data, ElementsAre(world.rank() * (world.rank() + 1) / 2));
  });
}

TEST_P(Verbs, PermuteGivesZerosWhereNothingArrives) {
  on_every_rank([](Group& world) {
    Pairs pairs;
    for (int rank = 0; rank + 1 < world.size(); ++rank) pairs.emplace_back(rank, rank + 1);
    const std::vector<int> data(2, world.rank() + 1);
    std::vector<int> out(2, -1);
    world.permute(data, out, pairs);
    EXPECT_THAT(out, Each(world.rank()));
  });
}

TEST_P(Verbs, ViewsWithStridesAreUsedWhereTheyLie) {
  on_every_rank([](Group& world) {
    // The middle column of a 3 × 3 matrix, and the rows of another one backwards.
    std::array<float, 9> matrix{};
    matrix.fill(1);
    const std::array<std::int64_t, 1> three{3}, stride{3};
    world.all_reduce(View(&matrix[1], DType::float32, three, stride));
    const auto n = static_cast<float>(world.size());
    EXPECT_THAT(matrix, ElementsAre(1, n, 1, 1, n, 1, 1, n, 1));

    std::array<float, 4> rows{1, 2, 3, 4};
    const std::array<std::int64_t, 2> shape{2, 2}, backwards{-2, 1};
    std::array<float, 4> out{};
    world.all_reduce(View(&rows[2], DType::float32, shape, backwards), View(out.data(), DType::float32, shape));
    EXPECT_THAT(out, ElementsAre(3 * n, 4 * n, n, 2 * n));
  });
}

TEST_P(Verbs, AllGatherJoinsAlongAnyAxis) {
  on_every_rank([](Group& world) {
    std::array<int, 2> column{world.rank(), 10 + world.rank()};
    const std::array<std::int64_t, 2> shape{2, 1}, joined{2, world.size()};
    std::vector<int> out(2 * static_cast<std::size_t>(world.size()));
    world.all_gather(View(column.data(), DType::int32, shape), View(out.data(), DType::int32, joined), {.axis = -1});
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_EQ(out[static_cast<std::size_t>(rank)], rank);
      EXPECT_EQ(out[static_cast<std::size_t>(world.size() + rank)], 10 + rank);
    }
  });
}

TEST_P(Verbs, BarrierLetsNobodyLeaveBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  on_every_rank([&](Group& world) {
    ++entered;
    world.barrier();
    EXPECT_EQ(entered, world.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, Verbs, testing::ValuesIn(worlds({1, 2, 5})), world_name);
INSTANTIATE_TEST_SUITE_P(Extended, Verbs, testing::ValuesIn(extended_worlds({1, 2, 3})), world_name);

}  // namespace
}  // namespace tutti::contract
