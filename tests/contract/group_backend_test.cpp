// group_backend_test.cpp: groups that ask for a backend of their own, side by side in one job.
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

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_sums(const Group& group) {
  std::vector<int> data(5000, group.rank() + 1);
  group.all_reduce(data);
  EXPECT_THAT(data, Each(group.size() * (group.size() + 1) / 2)) << group.backend();
}

TEST(GroupBackend, GroupsOfOneJobUseSeveralBackendsInTurn) {
  make_thread_world({.size = 3}, "auto")->run([](Group& world) {
    const Group fast = world.split(0), plans = world.split(0, 0, {.backend = "native"});
    EXPECT_EQ(fast.backend(), "shm");
    EXPECT_EQ(plans.backend(), "native");
    for (int round = 0; round < 20; ++round) {
      expect_sums(fast);
      expect_sums(plans);
    }
  });
}

TEST(GroupBackend, AGroupIsMadeLikeTheOneItComesFrom) {
  make_thread_world({.size = 3}, "auto")->run([](Group& world) {
    const Group plans = world.subgroup({2, 1, 0}, {.backend = "native"});
    const Group part = plans.split(plans.rank() % 2);
    EXPECT_EQ(part.backend(), part.size() == 1 ? "alone" : "native");
    const Group fast = plans.split(0, 0, {.backend = "auto"});
    EXPECT_EQ(fast.backend(), "shm");
    expect_sums(part);
    expect_sums(fast);
  });
}

TEST(GroupBackend, ABackendOfTheProgramIsLeftOutOrAskedFor) {
  const auto board = std::make_shared<Board>();
  const auto world = make_thread_world({.size = 2, .backends = {board_backend(board)}}, "native");
  const int before = board->served;
  world->run([](Group& all) {
    EXPECT_EQ(all.backend(), "board");
    const Group plans = all.split(0, 0, {.backend = "native"});
    EXPECT_EQ(plans.backend(), "native");
    expect_sums(plans);
    EXPECT_EQ(all.split(0, 0, {.backend = "board"}).backend(), "board");
  });
  EXPECT_LE(board->served - before, 4);  // the splits of the world
}

TEST(GroupBackend, WhatCannotServeTheGroupIsRefusedOnEveryMember) {
  make_thread_world({.size = 2}, "native")->run([](Group& world) {
    const auto ask = [&](const std::string& name) {
      return error_of([&] { static_cast<void>(world.subgroup({0, 1}, {.backend = name})); });
    };
    EXPECT_THAT(ask("shm"), HasSubstr("the backend shm cannot serve the group of world ranks [0, 1]"));
    EXPECT_THAT(ask("ucx"), HasSubstr("start it with -B ucx or TUTTI_LINK=ucx"));
    EXPECT_THAT(ask("pvm"), HasSubstr("backend 'pvm' is not known; the known ones are auto, native, shm, ucx, mpi"));
    expect_sums(world);
  });
}

TEST(GroupBackend, MembersThatAskForDifferentOnesAllHearOfIt) {
  for (const bool lowest_asks : {false, true}) {
    make_thread_world({.size = 3}, "auto")->run([&](Group& world) {
      const bool asks = (world.rank() == 0) == lowest_asks;
      const std::string text = error_of([&] {
        const Group group = world.subgroup({0, 1, 2}, {.backend = asks ? "native" : ""});
        group.barrier();
      });
      EXPECT_THAT(text, HasSubstr("the members of a new group ask for different backends")) << world.rank();
      EXPECT_THAT(text, HasSubstr("the backend native")) << world.rank();
      expect_sums(world);
    });
  }
}

}  // namespace
}  // namespace tutti::contract
