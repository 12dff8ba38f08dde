// messages_test.cpp: send and receive: tags, order, any source, oneself, strides, sizes from nothing to large.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using testing::Each;
using testing::ElementsAre;

class Messages : public InWorld {};

int next(const Group& group) { return (group.rank() + 1) % group.size(); }
int previous(const Group& group) { return (group.rank() + group.size() - 1) % group.size(); }

TEST_P(Messages, GoFromOneRankToAnother) {
  on_every_rank([](const Group& world) {
    std::vector<int> data{1, 2, 3};
    if (world.rank() == 0) world.send(data, world.size() - 1, {.tag = 7});
    if (world.rank() == world.size() - 1) {
      std::vector<int> got(3);
      EXPECT_EQ(world.recv(got, 0, {.tag = 7}), (Received{.source = 0, .tag = 7, .count = 3}));
      EXPECT_EQ(got, data);
    }
  });
}

TEST_P(Messages, OfEverySizeGoRoundInARing) {
  on_every_rank([](const Group& world) {
    for (const std::size_t count : {0u, 1u, 1000u, 300'001u}) {
      const std::vector<int> data(count, world.rank());
      std::vector<int> got(count, -1);
      world.sendrecv(data, next(world), got, previous(world));
      EXPECT_THAT(got, Each(previous(world)));
    }
  });
}

TEST_P(Messages, OfOneTagDoNotOvertakeEachOther) {
  on_every_rank([](const Group& world) {
    constexpr int count = 40;
    std::vector<std::vector<int>> out, in;
    std::vector<Work> works;
    for (int i = 0; i < count; ++i) {  // large and small in turns
      const std::size_t length = i % 4 == 0 ? 50'000 : 1;
      out.emplace_back(length, i);
      in.emplace_back(length, -1);
    }
    for (auto& data : out) works.push_back(world.isend(data, next(world)));
    for (auto& data : in) works.push_back(world.irecv(data, previous(world)));
    for (Work& work : works) work.wait();
    EXPECT_EQ(in, out);
  });
}

TEST_P(Messages, AreToldApartByTheirTags) {
  on_every_rank([](const Group& world) {
    std::vector<int> red{1}, blue{2}, got_red(1), got_blue(1);
    Work first = world.isend(red, next(world), {.tag = 1});
    Work second = world.isend(blue, next(world), {.tag = 2});
    world.recv(got_blue, previous(world), {.tag = 2});
    world.recv(got_red, previous(world), {.tag = 1});
    first.wait();
    second.wait();
    EXPECT_THAT(got_red, ElementsAre(1));
    EXPECT_THAT(got_blue, ElementsAre(2));
  });
}

TEST_P(Messages, FromAnySourceTellWhoseTheyAre) {
  on_every_rank([](const Group& world) {
    constexpr int rounds = 3;
    if (world.rank() != 0) {
      for (int round = 0; round < rounds; ++round) {
        const std::array<int, 2> data{world.rank(), round};
        world.send(data, 0);
      }
      return;
    }
    std::vector<int> rounds_seen(static_cast<std::size_t>(world.size()), 0);
    for (int i = 0; i < rounds * (world.size() - 1); ++i) {
      std::array<int, 2> got{};
      const int source = world.recv(got, any_source).source;
      EXPECT_EQ(got[0], source);
      EXPECT_EQ(got[1], rounds_seen[static_cast<std::size_t>(source)]++);
    }
  });
}

TEST_P(Messages, AsynchronouslyReceivedFromAnySourceTellWhoseTheyAre) {
  on_every_rank([](const Group& world) {
    std::array<int, 1> data{world.rank()}, got{-1};
    Work receiving = world.irecv(got, any_source);
    Work sending = world.isend(data, next(world));
    receiving.wait();
    sending.wait();
    EXPECT_EQ(receiving.source(), previous(world));
    EXPECT_EQ(got[0], previous(world));
  });
}

TEST_P(Messages, CanBeSentToOneself) {
  on_every_rank([](const Group& world) {
    for (const std::size_t count : {0u, 3u, 100'000u}) {
      std::vector<int> data(count, world.rank()), got(count, -1);
      Work receiving = world.irecv(got, world.rank(), {.tag = 5});
      world.send(data, world.rank(), {.tag = 5});
      receiving.wait();
      EXPECT_EQ(got, data);
    }
  });
}

TEST_P(Messages, TakeElementsThroughStrides) {
  on_every_rank([](const Group& world) {
    std::array<int, 6> matrix{0, 1, 2, 3, 4, 5};
    std::array<int, 6> into{};
    const std::array<std::int64_t, 2> shape{3, 2}, transposed{1, 3}, backwards{-2, 1};
    world.sendrecv(View(matrix.data(), DType::int32, shape, transposed), next(world),
                   View(&into[4], DType::int32, shape, backwards), previous(world));
    EXPECT_THAT(into, ElementsAre(2, 5, 1, 4, 0, 3));
  });
}

TEST_P(Messages, ThatNobodyAwaitsYetWaitForTheirReceive) {
  on_every_rank([](const Group& world) {
    const std::vector<int> data(10, world.rank());
    std::vector<Work> sends;
    for (std::uint32_t tag = 0; tag < 20; ++tag) sends.push_back(world.isend(data, next(world), {.tag = tag}));
    world.barrier();  // collectives pass the messages that lie there
    for (std::uint32_t tag = 20; tag-- > 0;) {
      std::vector<int> got(10);
      world.recv(got, previous(world), {.tag = tag});
      EXPECT_THAT(got, Each(previous(world)));
    }
    for (Work& send : sends) send.wait();
  });
}

TEST_P(Messages, OfDifferentGroupsAreNotMixedUp) {
  on_every_rank([](const Group& world) {
    Group duplicate = world.split(0);
    std::array<int, 1> in_world{1}, in_duplicate{2}, from_world{}, from_duplicate{};
    Work first = world.isend(in_world, next(world));
    Work second = duplicate.isend(in_duplicate, next(duplicate));
    duplicate.recv(from_duplicate, previous(duplicate));
    world.recv(from_world, previous(world));
    first.wait();
    second.wait();
    EXPECT_EQ(from_world[0], 1);
    EXPECT_EQ(from_duplicate[0], 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, Messages, testing::ValuesIn(worlds({2, 3, 5})), world_name);

class MessagesAlone : public InWorld {};

TEST_P(MessagesAlone, GoToOneself) {
  on_every_rank([](const Group& world) {
    std::vector<int> data{4, 5}, got(2);
    world.sendrecv(data, 0, got, 0);
    EXPECT_EQ(got, data);
    Work receiving = world.irecv(got, any_source, {.tag = 1});
    world.send(data, 0, {.tag = 1});
    receiving.wait();
    EXPECT_EQ(receiving.source(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, MessagesAlone, testing::ValuesIn(worlds({1})), world_name);

}  // namespace
}  // namespace tutti::contract
