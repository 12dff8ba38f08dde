// types_test.cpp: the types that programs are made of: values, structs, enums, texts, const ranges, matrices; as users write them.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/tutti.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

class Types : public InWorld {};

struct Particle {
  double position[3];
  float mass;
  friend bool operator==(const Particle&, const Particle&) = default;
};
static_assert(sizeof(Particle) == 32);

struct Page {  // too large to be known by its size
  std::array<char, 1001> text;
  friend bool operator==(const Page&, const Page&) = default;
};

enum class Color : std::uint16_t { red, green, blue };

Particle particle(int i) { return {.position = {i + 0.1, i + 0.2, i + 0.3}, .mass = static_cast<float>(i)}; }

/// A matrix of some other library.
struct Table {
  std::vector<float> elements;
  [[nodiscard]] float* data() { return elements.data(); }
  [[nodiscard]] const float* data() const { return elements.data(); }
  [[nodiscard]] int rows() const { return 2; }
  [[nodiscard]] int cols() const { return static_cast<int>(elements.size()) / 2; }
};

/// Every second column of a matrix of two rows, as std::mdspan with a stride tells it.
struct EverySecond {
  double* first;
  static constexpr std::size_t rank() { return 2; }
  [[nodiscard]] double* data_handle() const { return first; }
  [[nodiscard]] std::size_t extent(std::size_t axis) const { return axis == 0 ? 2 : 3; }
  [[nodiscard]] std::size_t stride(std::size_t axis) const { return axis == 0 ? 6 : 2; }
};

TEST_P(Types, OneValueGoesInAndTheResultComesOut) {
  on_every_rank([](const Group& world) {
    const int p = world.size(), rank = world.rank();
    EXPECT_EQ(world.all_reduce(1.5f), 1.5f * static_cast<float>(p));
    EXPECT_EQ(world.all_reduce(rank, {.op = Op::max, .timeout = 0.5min}), p - 1);
    EXPECT_EQ(world.reduce(1L, {.root = p - 1}), rank == p - 1 ? p : 1);
    EXPECT_EQ(world.broadcast(rank + 7, {.root = p - 1}), p + 6);
    EXPECT_EQ(world.broadcast(rank == 0 ? Color::blue : Color::red), Color::blue);
    EXPECT_EQ(world.broadcast(particle(rank)), particle(0));
    EXPECT_EQ(world.broadcast(std::pair(rank, 2.5)), std::pair(0, 2.5));
    EXPECT_EQ(world.scan(1), rank + 1);
    EXPECT_EQ(world.exscan(1), rank);
    const std::vector<int> all = world.all_gather(rank);
    for (int i = 0; i < p; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(world.gather(rank, {.root = p - 1}).size(), static_cast<std::size_t>(rank == p - 1 ? p : 0));
  });
}

TEST_P(Types, ConstRangesAndTemporariesGiveTheirResultsByValue) {
  on_every_rank([](const Group& world) {
    const std::vector<double> mine(3, 1.0);
    EXPECT_THAT(world.all_reduce(mine), Each(world.size()));
    EXPECT_THAT(mine, Each(1.0));
    EXPECT_THAT(world.all_reduce(std::span<const double>(mine), {.op = Op::max}), Each(1.0));
    EXPECT_THAT(world.all_reduce(std::vector<int>{1, 2}), ElementsAre(world.size(), 2 * world.size()));
    EXPECT_EQ(world.all_gather(std::vector<int>{1, 2}).size(), static_cast<std::size_t>(2 * world.size()));
  });
}

TEST_P(Types, StructsEnumsAndBytesMoveThroughEveryVerbThatMoves) {
  on_every_rank([](const Group& world) {
    const int p = world.size(), rank = world.rank();
    const auto n = static_cast<std::size_t>(p);
    std::vector<Particle> one{particle(rank), particle(rank + 100)};
    EXPECT_EQ(world.all_gather(one)[2 * n - 1], particle(p - 1 + 100));
    const std::vector<Particle> gathered = world.gather(one);
    EXPECT_EQ(gathered.size(), rank == 0 ? 2 * n : 0);
    EXPECT_TRUE(rank != 0 || gathered[2 * n - 2] == particle(p - 1));
    std::vector<Particle> many;
    for (int i = 0; i < p; ++i) many.push_back(particle(10 * rank + i));
    EXPECT_EQ(world.all_to_all(many)[n - 1], particle(10 * (p - 1) + rank));
    EXPECT_EQ(world.scatter_from(many)[0], particle(rank));
    EXPECT_EQ(world.broadcast_from(rank == 0 ? many : std::vector<Particle>{}), world.broadcast_from(many));
    std::vector<Particle> moved(2);
    world.permute(one, moved, {{0, p - 1}, {p - 1, 0}});
    EXPECT_TRUE(rank != 0 || moved[0] == particle(p - 1));
    world.broadcast(one, {.root = p - 1});
    EXPECT_EQ(one[1], particle(p - 1 + 100));

    std::vector<Color> colors(5, rank == 0 ? Color::green : Color::red);
    world.broadcast(colors);
    EXPECT_THAT(colors, Each(Color::green));
    std::vector<std::byte> bytes(5, std::byte(rank));
    EXPECT_EQ(world.all_gather(bytes).back(), std::byte(p - 1));
    Page page{};
    page.text.fill(static_cast<char>('a' + rank));
    const std::vector<Page> pages = world.all_gather(std::vector<Page>{page, page});
    EXPECT_EQ(pages.size(), 2 * n);
    EXPECT_EQ(pages.back().text[1000], static_cast<char>('a' + p - 1));
  });
}

TEST_P(Types, ArraysInsideOfAnArrayAreAxesAndCanBeReduced) {
  on_every_rank([](const Group& world) {
    std::vector<std::array<float, 3>> points(4, {1, 2, 3});
    world.all_reduce(points);
    const auto p = static_cast<float>(world.size());
    EXPECT_THAT(points, Each(std::array{p, 2 * p, 3 * p}));
    EXPECT_EQ(world.all_gather(points).size(), 4 * static_cast<std::size_t>(world.size()));
  });
}

TEST_P(Types, TextsMoveAsTexts) {
  on_every_rank([](const Group& world) {
    const std::string name = world.rank() == 0 ? "the root's name" : "";
    const std::string got = world.broadcast_from(name);
    EXPECT_EQ(got, "the root's name");
    const std::string all = world.all_gather(std::string("ab"));
    EXPECT_EQ(all.size(), 2 * static_cast<std::size_t>(world.size()));
  });
}

TEST_P(Types, AnUnevenGatherTellsHowManyCameFromWhom) {
  on_every_rank([](const Group& world) {
    const std::vector<int> part(static_cast<std::size_t>(world.rank()), world.rank());
    const auto [values, counts] = world.gather_uneven(part, {.root = world.size() - 1});
    const auto everywhere = world.all_gather_uneven(part);
    ASSERT_EQ(everywhere.counts.size(), static_cast<std::size_t>(world.size()));
    std::size_t at = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_EQ(everywhere.counts[static_cast<std::size_t>(rank)], rank);
      for (int i = 0; i < rank; ++i) EXPECT_EQ(everywhere.values[at++], rank);
    }
    EXPECT_EQ(at, everywhere.values.size());
    if (world.rank() == world.size() - 1) {
      EXPECT_EQ(values, everywhere.values);
      EXPECT_EQ(counts, everywhere.counts);
    } else {
      EXPECT_THAT(values, IsEmpty());
      EXPECT_THAT(counts, IsEmpty());
    }
  });
}

TEST_P(Types, PointersWithExtentsMatricesAndSpansOfSeveralAxesAreArrays) {
  on_every_rank([](const Group& world) {
    std::vector<double> memory(12, 1.0);
    const auto p = static_cast<double>(world.size());
    world.all_reduce(tutti::view(memory.data(), {2, 3}, {6, 2}));
    EXPECT_THAT(memory, ElementsAre(p, 1, p, 1, p, 1, p, 1, p, 1, p, 1));
    world.all_reduce(EverySecond{memory.data() + 1});
    EXPECT_THAT(memory, Each(p));
    Table table{{1, 2, 3, 4}};
    world.all_reduce(table);
    EXPECT_EQ(table.elements[3], 4 * static_cast<float>(world.size()));
    const Table fixed{{1, 2, 3, 4}};
    Table result{{0, 0, 0, 0}};
    world.all_reduce(fixed, result);
    EXPECT_EQ(result.elements, table.elements);
    EXPECT_TRUE(View(fixed).is_read_only());
  });
}

TEST_P(Types, ASubgroupIsMadeFromAListOfRanks) {
  on_every_rank([](const Group& world) {
    const Group two = world.subgroup({0, world.size() - 1});
    EXPECT_TRUE(two.rank() < 0 || two.all_reduce(1) == 2);
  });
}

class TypesThatDiffer : public InWorld {};

TEST_P(TypesThatDiffer, AreNamedWithTheirSizes) {
  on_every_rank([](const Group& world) {
    const Group pair = world.split(0);
    std::vector<Particle> particles(2);
    std::vector<std::pair<int, int>> pairs(2);
    try {
      world.rank() == 0 ? void(pair.all_gather(particles))
                        : void(pair.all_gather(pairs));  // the root of a broadcast would not wait
      ADD_FAILURE() << "rank " << world.rank() << " did not notice";
    } catch (const Mismatch& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("struct of 32 bytes × 2"));
      EXPECT_THAT(error.what(), testing::HasSubstr("struct of 8 bytes × 2"));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Types, testing::ValuesIn(worlds({2, 3})), world_name);
INSTANTIATE_TEST_SUITE_P(Worlds, TypesThatDiffer, testing::ValuesIn(thread_worlds({2, 3})), world_name);

}  // namespace
}  // namespace tutti::contract
