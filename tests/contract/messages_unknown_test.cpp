// messages_unknown_test.cpp: messages of unknown size, probes, cancelling, nobody, and messages that fail.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

#include <tutti/error.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class UnknownMessages : public InWorld {};

int next(const Group& group) { return (group.rank() + 1) % group.size(); }
int previous(const Group& group) { return (group.rank() + group.size() - 1) % group.size(); }

// Collectives and messages work: the group is whole.
void expect_whole(Group& world) {
  std::vector<int> ones{1, 2};
  world.all_reduce(ones);
  EXPECT_THAT(ones, ElementsAre(world.size(), 2 * world.size()));
  const std::vector<int> mine(3, world.rank());
  std::vector<int> got(3);
  world.sendrecv(mine, next(world), got, previous(world), {.tag = 1000});
  EXPECT_THAT(got, Each(previous(world)));
}

// From sizes that travel at once to sizes that are announced.
constexpr std::array<std::size_t, 4> sizes{0, 3, 5'000, 400'000};

TEST_P(UnknownMessages, ComeAsTheyWereSent) {
  on_every_rank([](Group& world) {
    for (const std::size_t count : sizes) {
      std::vector<int> sent(count);
      std::iota(sent.begin(), sent.end(), world.rank());
      Work sending = world.isend(sent, next(world));
      const auto got = world.recv<std::vector<int>>(previous(world));
      sending.wait();
      ASSERT_EQ(got.size(), count);
      EXPECT_THAT(std::span(got).first(std::min<std::size_t>(count, 1)), Each(previous(world)));
    }
    const double number = 0.5 + world.rank();
    Work sending = world.isend(std::span(&number, 1), next(world), {.tag = 4});
    EXPECT_EQ(world.recv<double>(any_source, {.tag = any_tag}), 0.5 + previous(world));
    sending.wait();
  });
}

TEST_P(UnknownMessages, MayLeaveRoom) {
  on_every_rank([](Group& world) {
    for (const std::size_t count : sizes) {
      const std::vector<int> sent(count, world.rank());
      std::vector<int> got(count + 100, -1);
      const Received received = world.sendrecv(sent, next(world), got, previous(world), {.tag = 3});
      EXPECT_EQ(received, (Received{.source = previous(world), .tag = 3, .count = static_cast<std::int64_t>(count)}));
      EXPECT_THAT(std::span(got).first(count), Each(previous(world)));
      EXPECT_THAT(std::span(got).subspan(count), Each(-1));
    }
  });
}

TEST_P(UnknownMessages, LeaveRoomInStridedArrays) {
  on_every_rank([](Group& world) {
    const std::array<int, 5> sent{1, 2, 3, 4, 5};
    std::array<int, 24> matrix{};
    const std::array<std::int64_t, 2> shape{4, 3}, strides{6, 2};  // every second column of 4 rows of 6
    world.sendrecv(sent, next(world), View(matrix.data(), DType::int32, shape, strides), previous(world));
    EXPECT_THAT(matrix, ElementsAre(1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  });
}

TEST_P(UnknownMessages, AreFoundByAProbeThatReservesThem) {
  on_every_rank([](Group& world) {
    for (const std::size_t count : sizes) {
      const std::vector<int> first(count, 1), second(count + 1, 2);
      Work one = world.isend(first, next(world), {.tag = 6}), two = world.isend(second, next(world), {.tag = 6});
      Message found = world.probe(any_source, {.tag = any_tag});
      EXPECT_EQ(found.source(), previous(world));
      EXPECT_EQ(found.tag(), 6u);
      EXPECT_EQ(found.count(), static_cast<std::int64_t>(count));
      EXPECT_EQ(found.dtype(), DType::int32);
      EXPECT_THAT(found.shape(), ElementsAre(static_cast<std::int64_t>(count)));
      // No other receive gets it.
      const auto other = world.recv<std::vector<int>>(previous(world), {.tag = 6});
      ASSERT_EQ(other.size(), count + 1);
      const auto got = found.recv<std::vector<int>>();
      ASSERT_EQ(got.size(), count);
      EXPECT_THAT(got, Each(1));
      EXPECT_FALSE(found.valid());
      one.wait();
      two.wait();
    }
  });
}

TEST_P(UnknownMessages, OfWhichAProbeLetsGoAreThereAgain) {
  on_every_rank([](Group& world) {
    for (const std::size_t count : sizes) {
      const std::vector<int> first(count, 1), second(count, 2);
      Work one = world.isend(first, next(world)), two = world.isend(second, next(world));
      { const Message dropped = world.probe(previous(world)); }
      std::vector<int> got(count);
      world.recv(got, previous(world));
      EXPECT_THAT(got, Each(1));
      world.recv(got, previous(world));
      EXPECT_THAT(got, Each(2));
      one.wait();
      two.wait();
    }
  });
}

TEST_P(UnknownMessages, ThatHaveNotComeAreNotFound) {
  on_every_rank([](Group& world) {
    EXPECT_FALSE(world.iprobe(any_source, {.tag = 77}).valid());
    world.barrier();
    const std::vector<int> sent{1, 2, 3};
    world.send(sent, next(world), {.tag = 77});
    world.barrier();
    Message found;
    while (!found.valid()) found = world.iprobe(previous(world), {.tag = 77});
    EXPECT_THAT(found.recv<std::vector<int>>(), ElementsAre(1, 2, 3));
    EXPECT_FALSE(world.iprobe(any_source, {.tag = any_tag}).valid());
  });
}

TEST_P(UnknownMessages, TellTheirShape) {
  on_every_rank([](Group& world) {
    std::array<float, 24> data{};
    const auto shape_that_comes = [&](std::vector<std::int64_t> shape) {
      Work sending = world.isend(View(data.data(), DType::float32, shape), next(world));
      Message found = world.probe(previous(world));
      EXPECT_EQ(found.shape(), shape);
      const std::int64_t count = found.count();
      EXPECT_EQ(count, View(data.data(), DType::float32, shape).count());
      EXPECT_EQ(static_cast<std::int64_t>(found.recv<std::vector<float>>().size()), count);
      sending.wait();
    };
    shape_that_comes({});
    shape_that_comes({24});
    shape_that_comes({4, 6});
    shape_that_comes({0, 6});
    shape_that_comes({4, 0});
    shape_that_comes({2, 3, 4});
    shape_that_comes({2, 3, 4});
    shape_that_comes({4, 3, 2});
    shape_that_comes({1, 1, 2, 1, 3, 1, 4});
  });
}

TEST_P(UnknownMessages, OfAnyTagComeInTheOrderInWhichTheyWereSent) {
  on_every_rank([](Group& world) {
    std::vector<std::array<int, 1>> sent;
    for (int i = 0; i < 20; ++i) sent.push_back({i});
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i)
      works.push_back(
          world.isend(sent[static_cast<std::size_t>(i)], next(world), {.tag = static_cast<std::uint32_t>(i * 7 % 20)}));
    for (int i = 0; i < 20; ++i) {
      std::array<int, 1> got{};
      const Received received = world.recv(got, previous(world), {.tag = any_tag});
      EXPECT_EQ(got[0], i);
      EXPECT_EQ(received.tag, static_cast<std::uint32_t>(i * 7 % 20));
    }
    for (Work& work : works) work.wait();
  });
}

TEST_P(UnknownMessages, GoToTheReceiveThatWasPostedFirstWhateverItsTag) {
  on_every_rank([](Group& world) {
    std::array<int, 1> any{}, five{}, later{}, one{1}, two{2}, three{3};
    Work first = world.irecv(any, previous(world), {.tag = any_tag});
    Work second = world.irecv(five, previous(world), {.tag = 5});
    Work third = world.irecv(later, previous(world), {.tag = any_tag});
    world.barrier();
    world.send(one, next(world), {.tag = 5});
    world.send(two, next(world), {.tag = 5});
    world.send(three, next(world), {.tag = 6});
    first.wait();
    second.wait();
    third.wait();
    EXPECT_EQ(any[0], 1);
    EXPECT_EQ(five[0], 2);
    EXPECT_EQ(later[0], 3);
    EXPECT_EQ(third.received(), (Received{.source = previous(world), .tag = 6, .count = 1}));
  });
}

TEST_P(UnknownMessages, ToAndFromNobodyDoNothing) {
  on_every_rank([](Group& world) {
    std::vector<int> data{1, 2}, out{7, 7};
    world.send(data, nobody);
    EXPECT_EQ(world.recv(out, nobody), Received{});
    EXPECT_EQ(world.sendrecv(data, nobody, out, nobody), Received{});
    Work sending = world.isend(data, nobody), receiving = world.irecv(out, nobody);
    sending.wait();
    receiving.wait();
    EXPECT_EQ(receiving.source(), nobody);
    EXPECT_THAT(world.recv<std::vector<int>>(nobody), ElementsAre());
    EXPECT_THAT(out, ElementsAre(7, 7));
    EXPECT_THROW(static_cast<void>(world.probe(nobody)), InvalidArgument);
    expect_whole(world);
  });
}

TEST_P(UnknownMessages, ThatNobodyHasSentCanBeCancelled) {
  on_every_rank([](Group& world) {
    std::vector<int> got(4, -1);
    Work receiving = world.irecv(got, any_source, {.tag = 8});
    EXPECT_TRUE(receiving.cancel());
    EXPECT_THROW(receiving.wait(), Aborted);
    EXPECT_FALSE(receiving.cancel());
    world.barrier();
    // What is sent afterwards is for the next receive.
    const std::vector<int> sent(4, world.rank());
    std::vector<int> later(4);
    world.sendrecv(sent, next(world), later, previous(world), {.tag = 8});
    EXPECT_THAT(later, Each(previous(world)));
    EXPECT_THAT(got, Each(-1));
    expect_whole(world);
  });
}

TEST_P(UnknownMessages, ThatNoReceiveHasFoundAreGivenBackToTheirSender) {
  on_every_rank([](Group& world) {
    const std::vector<int> large(400'000, 1);
    Work sending = world.isend(large, next(world), {.tag = 9});
    world.barrier();
    static_cast<void>(sending.cancel());
    EXPECT_THROW(sending.wait(), Aborted);
    world.barrier();
    EXPECT_FALSE(world.iprobe(any_source, {.tag = any_tag}).valid());
    world.barrier();
    expect_whole(world);
  });
}

TEST_P(UnknownMessages, WhoseReceiveIsDroppedAreForTheNextOne) {
  on_every_rank([](Group& world) {
    std::vector<int> got(2, -1);
    const auto begin = std::chrono::steady_clock::now();
    { const Work dropped = world.irecv(got, previous(world), {.tag = 3}); }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);  // not to its deadline
    world.barrier();
    const std::vector<int> sent{4, 5};
    std::vector<int> later(2);
    world.sendrecv(sent, next(world), later, previous(world), {.tag = 3});
    EXPECT_EQ(later, sent);
    EXPECT_THAT(got, Each(-1));
  });
}

TEST_P(UnknownMessages, ThatFindTooLittleRoomFailAlone) {
  on_every_rank([](Group& world) {
    for (const std::size_t count : {10u, 5'000u, 400'000u}) {
      const std::vector<int> sent(count, 1);
      std::vector<int> got(count - 1, -1);
      Work sending = world.isend(sent, next(world));
      try {
        world.recv(got, previous(world));
        ADD_FAILURE() << "it had too little room";
      } catch (const Mismatch& error) {
        EXPECT_THAT(error.what(), HasSubstr("too little room"));
      }
      sending.wait();
      EXPECT_THAT(got, Each(-1));
      expect_whole(world);
    }
  });
}

TEST_P(UnknownMessages, OfAnotherDtypeFailAlone) {
  on_every_rank([](Group& world) {
    const std::vector<float> sent(5, 1.0f);
    std::vector<int> got(5, -1);
    Work sending = world.isend(sent, next(world)), again = world.isend(sent, next(world));
    EXPECT_THROW(world.recv(got, previous(world)), Mismatch);
    EXPECT_THROW(static_cast<void>(world.recv<std::vector<double>>(previous(world))), Mismatch);
    sending.wait();
    again.wait();
    EXPECT_THAT(got, Each(-1));
    expect_whole(world);
  });
}

TEST_P(UnknownMessages, ThatDoNotComeInTimeFailAlone) {
  on_every_rank([](Group& world) {
    std::vector<int> got(3, -1);
    EXPECT_THROW(world.recv(got, previous(world), {.tag = 2, .timeout = 60ms}), Timeout);
    EXPECT_THROW(static_cast<void>(world.probe(any_source, {.tag = 2, .timeout = 60ms})), Timeout);
    world.barrier();
    const std::vector<int> sent(3, world.rank());
    world.send(sent, next(world), {.tag = 2});
    std::vector<int> later(3);
    world.recv(later, previous(world), {.tag = 2});
    EXPECT_THAT(later, Each(previous(world)));
    EXPECT_THAT(got, Each(-1));
    expect_whole(world);
  });
}

TEST_P(UnknownMessages, ThatAreNotReceivedInTimeFailAlone) {
  on_every_rank([](Group& world) {
    const std::vector<int> large(400'000, 1), small{5};
    EXPECT_THROW(world.send(large, next(world), {.tag = 2, .timeout = 60ms}), Timeout);
    world.barrier();
    EXPECT_FALSE(world.iprobe(any_source, {.tag = any_tag}).valid());
    world.barrier();  // nobody has sent anything else before
    Work sending = world.isend(small, next(world), {.tag = 2});
    EXPECT_THAT(world.recv<std::vector<int>>(previous(world), {.tag = 2}), ElementsAre(5));
    sending.wait();
    expect_whole(world);
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, UnknownMessages, testing::ValuesIn(worlds({1, 2, 3})), world_name);

}  // namespace
}  // namespace tutti::contract
