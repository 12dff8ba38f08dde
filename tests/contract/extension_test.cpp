// extension_test.cpp: a backend that a program brings along: which calls it serves, and what happens where ranks differ.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <tutti/error.hpp>

#include "board_backend.hpp"
#include "world.hpp"

namespace tutti::contract {
namespace {

using testing::Each;
using testing::HasSubstr;

struct BoardWorld {
  std::shared_ptr<Board> board = std::make_shared<Board>();
  std::unique_ptr<World> world = make_thread_world({.size = 2, .backends = {board_backend(board)}}, "native");
};

TEST(Extension, ServesTheCallsThatItDoesNotRefuse) {
  BoardWorld given;
  const int before = given.board->served;
  given.world->run([](Group& world) {
    EXPECT_EQ(world.backend(), "board");
    std::vector<float> data(3, 1.0f);
    world.all_reduce(data);
    EXPECT_THAT(data, Each(2.0f));
  });
  EXPECT_EQ(given.board->served - before, 2);
}

TEST(Extension, LeavesTheCallsThatItRefusesToTheBackendsBehindIt) {
  BoardWorld given;
  const int before = given.board->served;
  given.world->run([](Group& world) {
    std::vector<float> data(3, 2.0f);
    world.all_reduce(data, {.op = Op::product});
    EXPECT_THAT(data, Each(4.0f));
    std::vector<int> numbers(2, world.rank());
    world.scan(numbers);
    EXPECT_THAT(numbers, Each(world.rank()));
  });
  EXPECT_EQ(given.board->served, before);
}

TEST(Extension, CallsOfSeveralBackendsAreUnderWayAtTheSameTime) {
  BoardWorld given;
  given.world->run([](Group& world) {
    std::vector<std::vector<int>> arrays(20, std::vector<int>(100, world.rank() + 1));
    std::vector<Work> works;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      works.push_back(world.start(AllReduce{.data = arrays[i], .op = i % 2 == 0 ? Op::sum : Op::max}));
    for (Work& work : works) work.wait();
    for (std::size_t i = 0; i < arrays.size(); ++i) EXPECT_THAT(arrays[i], Each(i % 2 == 0 ? 3 : 2));
  });
}

TEST(Extension, ADifferenceThatItFindsBreaksTheGroupAndNamesBothSides) {
  BoardWorld given;
  given.world->run([](Group& world) {
    std::vector<int> data(static_cast<std::size_t>(3 + world.rank()));
    try {
      world.all_reduce(data);
      ADD_FAILURE() << "the difference was not noticed";
    } catch (const Mismatch& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr("int32 × 3"));
      EXPECT_THAT(std::string(error.what()), HasSubstr("int32 × 4"));
    }
    EXPECT_THROW(world.barrier(), Mismatch);
  });
}

TEST(Extension, ServesCallsThatWerePrepared) {
  BoardWorld given;
  given.world->run([](Group& world) {
    std::vector<int> data(4, 1);
    Prepared step = world.prepare(AllReduce{.data = data});
    for (int i = 0; i < 3; ++i) {
      step.start();
      step.wait();
    }
    EXPECT_THAT(data, Each(8));
  });
}

}  // namespace
}  // namespace tutti::contract
