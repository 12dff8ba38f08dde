// own_reductions_test.cpp: reductions by functions of the program's own: every verb, commutative or not, with what they capture.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/tutti.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using testing::Each;
using testing::HasSubstr;

class OwnReductions : public InWorld {};

/// x ↦ a·x + b. To do one after the other is associative, but the order counts.
struct Affine {
  std::int64_t a = 1, b = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};
Affine then(Affine first, Affine second) { return {first.a * second.a, second.a * first.b + second.b}; }
Affine of_rank(int rank, std::size_t i) {
  return {rank % 2 == 0 ? 1 : -1, static_cast<std::int64_t>(10 * rank) + static_cast<std::int64_t>(i)};
}
Affine of_ranks(int begin, int end, std::size_t i) {
  Affine all = of_rank(begin, i);
  for (int rank = begin + 1; rank < end; ++rank) all = then(all, of_rank(rank, i));
  return all;
}

constexpr auto in_order = tutti::op(&then, {.commutative = false});

std::vector<Affine> numbered(int rank, std::size_t count) {
  std::vector<Affine> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(of_rank(rank, i));
  return all;
}

/// From one line over several slots to what is cut into segments.
constexpr std::size_t counts[] = {0, 1, 3, 100, 5000, 100'000};

TEST_P(OwnReductions, WhatIsNotCommutativeKeepsTheOrderOfRanks) {
  on_every_rank([](const Group& world) {
    const int p = world.size(), rank = world.rank();
    for (const std::size_t count : counts) {
      std::vector<Affine> all = numbered(rank, count), at_root = all, before = all, until = all;
      world.all_reduce(all, {.op = in_order});
      world.reduce(at_root, {.root = p / 2, .op = in_order});
      world.scan(until, {.op = in_order});
      world.exscan(before, {.op = in_order});
      std::vector<Affine> wide = numbered(rank, count * static_cast<std::size_t>(p));
      const std::vector<Affine> part = world.reduce_scatter(wide, {.op = in_order});
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(all[i], of_ranks(0, p, i)) << "element " << i << " of " << count;
        ASSERT_TRUE(rank != p / 2 || at_root[i] == of_ranks(0, p, i)) << "element " << i << " of " << count;
        ASSERT_EQ(until[i], of_ranks(0, rank + 1, i));
        ASSERT_EQ(before[i], rank == 0 ? (Affine{0, 0}) : of_ranks(0, rank, i));
        ASSERT_EQ(part[i], of_ranks(0, p, count * static_cast<std::size_t>(rank) + i));
      }
    }
  });
}

struct Point {
  float x = 0, y = 0, z = 0;  // 12 bytes: they do not fill cache lines evenly
  friend bool operator==(const Point&, const Point&) = default;
};

TEST_P(OwnReductions, StructsOfAnySizeAreReduced) {
  on_every_rank([](const Group& world) {
    for (const std::size_t count : counts) {
      std::vector<Point> points(count, {1, 2, static_cast<float>(world.rank())});
      world.all_reduce(points, {.op = tutti::op([](Point a, Point b) {
                                  return Point{a.x + b.x, std::min(a.y, b.y), std::max(a.z, b.z)};
                                })});
      const auto p = static_cast<float>(world.size());
      ASSERT_THAT(points, Each(Point{p, 2, p - 1}));
    }
    struct Wide {
      alignas(8) char bytes[800];
    };
    std::vector<Wide> wide(700);
    for (Wide& each : wide) std::fill_n(each.bytes, 800, static_cast<char>(1 + world.rank()));
    world.all_reduce(
        wide, {.op = tutti::op([](const auto& a, const auto& b) { return a.bytes[799] > b.bytes[799] ? a : b; })});
    for (const Wide& each : wide) ASSERT_EQ(each.bytes[3], world.size());
  });
}

TEST_P(OwnReductions, NumbersAreReducedByOnesOwnFunctionAndByTheStandardLibrarys) {
  on_every_rank([](const Group& world) {
    std::vector<float> values(1000, static_cast<float>(world.rank() + 1));
    const float largest = static_cast<float>(world.size());
    world.all_reduce(values, {.op = tutti::op([](float a, float b) { return std::fmax(a, b); })});
    EXPECT_THAT(values, Each(largest));
    world.all_reduce(values, {.op = tutti::op(std::plus<>{})});
    EXPECT_THAT(values, Each(largest * largest));
    std::vector<bfloat16> small(5, bfloat16(1.5f));  // it is not widened: the function takes bfloat16
    world.all_reduce(small, {.op = tutti::op([](bfloat16 a, bfloat16 b) { return float(a) < float(b) ? a : b; })});
    EXPECT_THAT(small, Each(bfloat16(1.5f)));
    const double limit = 2.5;
    const auto add = tutti::op([&limit](double a, double b) { return std::min(a + b, limit); });
    EXPECT_EQ(world.all_reduce(1.0 * world.size(), {.op = add}), world.size() == 1 ? 1.0 : limit);
    std::vector<double> out(3);
    world.all_reduce(std::vector<double>(3, 2.0), {.op = tutti::op([](double a, double b) { return a * b; })})
        .swap(out);
    EXPECT_THAT(out, Each(std::pow(2.0, world.size())));
  });
}

TEST_P(OwnReductions, TheSmallestAndTheLargestValueAreFoundWithTheirPlace) {
  on_every_rank([](const Group& world) {
    const int p = world.size(), rank = world.rank();
    const auto [least, where] = world.all_reduce(At<double>{1.0 / (rank + 1), rank}, {.op = argmin});
    EXPECT_EQ(least, 1.0 / p);
    EXPECT_EQ(where, p - 1);
    const auto first = world.all_reduce(At<int>{7, rank}, {.op = argmax});
    EXPECT_EQ(first.index, 0) << "of equal values the first";
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto undefined = world.all_reduce(At<double>{rank == p - 1 ? nan : 1.0, rank}, {.op = argmin});
    EXPECT_EQ(undefined.index, p - 1) << "NaN wins, as in min";
    std::vector<At<float>> columns(100, {static_cast<float>(rank), rank});
    world.all_reduce(columns, {.op = argmax});
    EXPECT_THAT(columns, Each(At<float>{static_cast<float>(p - 1), p - 1}));
  });
}

TEST_P(OwnReductions, StartedAndPreparedCallsTakeThem) {
  on_every_rank([](const Group& world) {
    std::vector<Affine> data = numbered(world.rank(), 50);
    Work work = world.start(AllReduce{.data = data, .op = in_order});
    work.wait();
    EXPECT_EQ(data[7], of_ranks(0, world.size(), 7));
    data = numbered(world.rank(), 50);
    Prepared call = world.prepare(AllReduce{.data = data, .op = in_order});
    call.start();
    call.wait();
    EXPECT_EQ(data[7], of_ranks(0, world.size(), 7));
  });
}

TEST_P(OwnReductions, AFunctionForAnotherTypeIsRefusedAndTheGroupGoesOn) {
  on_every_rank([](const Group& world) {
    std::vector<double> data(3, 1.0);
    try {
      world.all_reduce(data, {.op = tutti::op([](float a, float b) { return a + b; })});
      ADD_FAILURE() << "it was taken";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("combines float32, but the array is of float64"));
    }
    std::vector<Point> points(3), out(3);
    EXPECT_THROW(world.all_reduce(points, out), InvalidArgument) << "structs have no sum";
    EXPECT_EQ(world.all_reduce(1), world.size());
  });
}

class OwnReductionsThatDiffer : public InWorld {};

TEST_P(OwnReductionsThatDiffer, InBeingCommutativeAreAMismatch) {
  on_every_rank([](const Group& world) {
    const Group pair = world.split(0);
    std::vector<Affine> data(3);
    EXPECT_THROW(pair.all_reduce(data, {.op = tutti::op(&then, {.commutative = world.rank() == 0})}), Mismatch);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, OwnReductions, testing::ValuesIn(worlds({1, 2, 3, 4})), world_name);
INSTANTIATE_TEST_SUITE_P(Worlds, OwnReductionsThatDiffer, testing::ValuesIn(thread_worlds({2, 3, 4})), world_name);

}  // namespace
}  // namespace tutti::contract
