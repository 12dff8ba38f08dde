// prepared_test.cpp: calls that are prepared once and started again and again.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tutti/error.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class PreparedCalls : public InWorld {};

TEST_P(PreparedCalls, AreStartedAgainWithTheSameArrays) {
  on_every_rank([](Group& world) {
    std::vector<float> grads(5);
    Prepared step = world.prepare(AllReduce{.data = grads});
    for (int i = 1; i <= 20; ++i) {
      std::fill(grads.begin(), grads.end(), static_cast<float>(i));
      step.start();
      step.wait();
      EXPECT_THAT(grads, Each(static_cast<float>(i * world.size())));
    }
  });
}

TEST_P(PreparedCalls, TakeOtherArraysOfTheSameShape) {
  on_every_rank([](Group& world) {
    std::vector<int> first(3, 1), second(3, 2), out(3), other(3);
    Prepared in_place = world.prepare(AllReduce{.data = first});
    in_place.start(second);
    in_place.wait();
    EXPECT_THAT(second, Each(2 * world.size()));
    EXPECT_THAT(first, Each(1));
    Prepared apart = world.prepare(AllReduce{.data = first, .out = out});
    apart.start(second);
    apart.wait();
    EXPECT_THAT(out, Each(2 * world.size() * world.size()));
    apart.start(first, other);
    apart.wait();
    EXPECT_THAT(other, Each(world.size()));
  });
}

TEST_P(PreparedCalls, OfEveryVerbGiveWhatTheVerbGives) {
  on_every_rank([](Group& world) {
    const int size = world.size(), rank = world.rank();
    const auto count = static_cast<std::size_t>(size);
    std::vector<int> one(2, rank + 1), all(2 * count), many(count, rank), part(1);
    const auto twice = [](Prepared step) {
      for (int i = 0; i < 2; ++i) {
        step.start();
        step.wait();
      }
    };
    twice(world.prepare(AllGather{.data = one, .out = all}));
    EXPECT_EQ(all.back(), size);
    twice(world.prepare(ReduceScatter{.data = many, .out = part}));
    EXPECT_THAT(part, ElementsAre(size * (size - 1) / 2));
    twice(world.prepare(AllToAll{.data = many, .out = std::span(all).first(count)}));
    EXPECT_EQ(all[count - 1], size - 1);
    twice(world.prepare(Gather{.data = one, .out = all}));
    twice(world.prepare(Scatter{.data = all, .out = one}));
    EXPECT_THAT(one, Each(rank + 1));
    std::vector<int> sums(2);
    twice(world.prepare(Scan{.data = one, .out = sums}));
    EXPECT_THAT(sums, Each((rank + 1) * (rank + 2) / 2));
    twice(world.prepare(ExclusiveScan{.data = one, .out = sums}));
    EXPECT_THAT(sums, Each(rank * (rank + 1) / 2));
    twice(world.prepare(Permute{.data = one, .out = sums, .pairs = {{0, size - 1}}}));
    EXPECT_THAT(sums, Each(rank == size - 1 ? 1 : 0));
    twice(world.prepare(Reduce{.data = one, .out = sums}));
    twice(world.prepare(Broadcast{.data = sums}));
    EXPECT_THAT(sums, Each(size * (size + 1) / 2));
    twice(world.prepare(Barrier{}));
  });
}

TEST_P(PreparedCalls, AreTheSameCallsAsThoseThatAreNotPrepared) {
  on_every_rank([](Group& world) {
    std::vector<double> data(4, 1.0);
    Prepared step = world.prepare(AllReduce{.data = data});
    for (int i = 0; i < 4; ++i) {
      if (world.rank() == 0) {
        step.start();
        step.wait();
      } else {
        world.all_reduce(data);
      }
    }
    double expected = 1;
    for (int i = 0; i < 4; ++i) expected *= world.size();
    EXPECT_THAT(data, Each(expected));
  });
}

TEST_P(PreparedCalls, MayBeUnderWayAtTheSameTimeThoughTheyHaveOneShape) {
  on_every_rank([](Group& world) {
    std::vector<std::vector<int>> arrays(8, std::vector<int>(1000, 1));
    std::vector<Prepared> steps;
    for (auto& array : arrays) steps.push_back(world.prepare(AllReduce{.data = array}));
    for (int i = 0; i < 2; ++i) {
      for (Prepared& step : steps) step.start();
      for (Prepared& step : steps) step.wait();
    }
    for (const auto& array : arrays) EXPECT_THAT(array, Each(world.size() * world.size()));
  });
}

TEST_P(PreparedCalls, ThatCannotBeRightAreRefusedAtOnceAndNobodyWaitsForThem) {
  on_every_rank([](Group& world) {
    std::vector<int> data(3), out(4);
    EXPECT_THROW((void)world.prepare(AllReduce{.data = data, .out = out}), InvalidArgument);
    EXPECT_THROW((void)world.prepare(Broadcast{.data = data, .root = world.size()}), InvalidArgument);
    world.barrier();  // preparing is local: the group is where it was
  });
}

TEST_P(PreparedCalls, RefuseArraysOfAnotherShape) {
  on_every_rank([](Group& world) {
    std::vector<int> data(3), longer(4), out(3);
    Prepared step = world.prepare(AllReduce{.data = data});
    EXPECT_THROW(step.start(longer), InvalidArgument);
    EXPECT_THROW(step.start(data, out), InvalidArgument);  // it was prepared in place
    EXPECT_THROW(step.wait(), InvalidArgument);            // nothing was started
    EXPECT_TRUE(step.test());
    step.start();
    step.wait();
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, PreparedCalls, testing::ValuesIn(worlds({1, 2, 3})), world_name);

class PreparedByTwo : public InWorld {};

TEST_P(PreparedByTwo, IsStartedAgainOnlyOnceItWasWaitedFor) {
  on_every_rank([](Group& world) {
    std::vector<int> data(3, 1);
    Prepared step = world.prepare(AllReduce{.data = data});
    step.start();
    EXPECT_THROW(step.start(), InvalidArgument);
    step.wait();
    EXPECT_TRUE(step.test());
    step.start();
    step.wait();
    EXPECT_THAT(data, Each(4));
  });
}

TEST_P(PreparedByTwo, ThatOneRankRefusesRaisesOnTheOtherAndTheGroupStaysUsable) {
  on_every_rank([](Group& world) {
    std::vector<int> data(3, 1), longer(4);
    Prepared step = world.prepare(AllReduce{.data = data});
    if (world.rank() == 0) {
      EXPECT_THROW(step.start(longer), InvalidArgument);
    } else {
      step.start();
      EXPECT_THROW(step.wait(), Aborted);
    }
    step.start();
    step.wait();
    EXPECT_THAT(data, Each(2));
  });
}

TEST_P(PreparedByTwo, WithAnotherShapeThanThePeersIsAMismatch) {
  on_every_rank([](Group& world) {
    std::vector<float> data(static_cast<std::size_t>(2 + world.rank()));
    Prepared step = world.prepare(AllReduce{.data = data});
    try {
      step.start();
      step.wait();
      ADD_FAILURE() << "the difference was not noticed";
    } catch (const Mismatch& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr("float32 × 3"));
    }
    EXPECT_THROW(step.start(), Mismatch);  // the group is broken
  });
}

TEST_P(PreparedByTwo, OutlivesTheHandleOfItsGroup) {
  on_every_rank([](Group& world) {
    std::vector<int> data(2, 1);
    Prepared step;
    {
      Group half = world.split(0);
      step = half.prepare(AllReduce{.data = data});
    }
    step.start();
    step.wait();
    EXPECT_THAT(data, Each(2));
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, PreparedByTwo, testing::ValuesIn(worlds({2})), world_name);

}  // namespace
}  // namespace tutti::contract
