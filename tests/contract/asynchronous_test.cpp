// asynchronous_test.cpp: calls that are started and waited for later: several at once, on several groups, over the same memory.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include <tutti/error.hpp>

#include "base/random.hpp"
#include "world_param.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

class Asynchronous : public InWorld {};

TEST_P(Asynchronous, CallsAreStartedAndWaitedFor) {
  on_every_rank([](Group& world) {
    std::vector<float> grads(1000, 1.0f);
    Work work = world.start(AllReduce{.data = grads});
    work.wait();
    EXPECT_THAT(grads, Each(static_cast<float>(world.size())));
    work.wait();  // again: it has ended, so nothing happens
    EXPECT_TRUE(work.test());
  });
}

TEST_P(Asynchronous, EveryVerbCanBeStarted) {
  on_every_rank([](Group& world) {
    const auto n = static_cast<std::size_t>(world.size());
    const int rank = world.rank();
    std::vector<int> reduced{1}, at_root{1}, sent{rank}, mine{rank}, all(n), gathered(n), share(1), spread(n, 5),
        part(1);
    std::vector<int> blocks(n, rank), exchanged(n), prefix{1}, before{1}, moved{-1};
    std::vector<Work> works;
    works.push_back(world.start(AllReduce{.data = reduced}));
    works.push_back(world.start(Reduce{.data = at_root, .root = 0}));
    works.push_back(world.start(Broadcast{.data = sent, .root = world.size() - 1}));
    works.push_back(world.start(AllGather{.data = mine, .out = all}));
    works.push_back(world.start(Gather{.data = mine, .out = gathered, .root = 0}));
    works.push_back(world.start(ReduceScatter{.data = spread, .out = share}));
    works.push_back(world.start(Scatter{.data = spread, .out = part, .root = 0}));
    works.push_back(world.start(AllToAll{.data = blocks, .out = exchanged}));
    works.push_back(world.start(Scan{.data = prefix}));
    works.push_back(world.start(ExclusiveScan{.data = before}));
    works.push_back(world.start(Permute{.data = mine, .out = moved, .pairs = {{0, world.size() - 1}}}));
    works.push_back(world.start(Barrier{}));
    std::vector<int> message{rank}, got{-1};
    works.push_back(world.start(Receive{.data = got, .from = any_source, .tag = 3}));
    works.push_back(world.start(Send{.data = message, .to = (rank + 1) % world.size(), .tag = 3}));
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();

    std::vector<int> ranks(n);
    std::iota(ranks.begin(), ranks.end(), 0);
    EXPECT_THAT(reduced, ElementsAre(world.size()));
    EXPECT_THAT(at_root, ElementsAre(rank == 0 ? world.size() : 1));
    EXPECT_THAT(sent, ElementsAre(world.size() - 1));
    EXPECT_EQ(all, ranks);
    EXPECT_EQ(gathered, rank == 0 ? ranks : std::vector<int>(n));
    EXPECT_THAT(share, ElementsAre(5 * world.size()));
    EXPECT_THAT(part, ElementsAre(5));
    EXPECT_EQ(exchanged, ranks);
    EXPECT_THAT(prefix, ElementsAre(rank + 1));
    EXPECT_THAT(before, ElementsAre(rank));
    EXPECT_THAT(moved, ElementsAre(0));
    EXPECT_THAT(got, ElementsAre((rank + world.size() - 1) % world.size()));
  });
}

TEST_P(Asynchronous, WaitingForAWhileOnlyStopsTheWaiting) {
  on_every_rank([](Group& world) {
    std::array<int, 1> data{1}, go{0};
    if (world.rank() == 0) {
      Work work = world.start(AllReduce{.data = data});
      if (world.size() > 1) {
        EXPECT_THROW(work.wait(30ms), Timeout);
      }
      for (int peer = 1; peer < world.size(); ++peer) world.send(go, peer);
      work.wait(30s);
    } else {
      world.recv(go, 0);
      world.all_reduce(data);
    }
    EXPECT_THAT(data, ElementsAre(world.size()));
  });
}

TEST_P(Asynchronous, CallbacksAreCalledOnceWhenTheCallEnds) {
  on_every_rank([](Group& world) {
    std::vector<int> data(100, 1);
    std::atomic<int> called = 0;
    Work work = world.start(AllReduce{.data = data});
    work.then([&](std::exception_ptr error) {
      EXPECT_FALSE(error);
      EXPECT_EQ(data[99], world.size());
      ++called;
    });
    work.wait();
    EXPECT_EQ(called, 1);
    work.then([&](std::exception_ptr) { ++called; });  // ended already: at once
    EXPECT_EQ(called, 2);
  });
}

TEST_P(Asynchronous, ADroppedWorkEndsBeforeItsMemoryGoes) {
  on_every_rank([](Group& world) {
    for (int i = 0; i < 10; ++i) {
      std::vector<int> data(2000, i);
      [[maybe_unused]] const Work dropped = world.start(AllReduce{.data = data});
    }
    std::vector<int> data{1};
    world.all_reduce(data);
    EXPECT_THAT(data, ElementsAre(world.size()));
  });
}

TEST_P(Asynchronous, CallsOnTheSameMemoryHappenInTheirOrder) {
  on_every_rank([](Group& world) {
    std::vector<double> data(3000, world.rank() + 1.0);
    std::vector<Work> works;
    double expected = 0;
    for (int i = 0; i < 12; ++i) {  // everybody takes one rank's values, then they are added up
      const int root = i % world.size();
      works.push_back(world.start(Broadcast{.data = data, .root = root}));
      works.push_back(world.start(AllReduce{.data = data, .op = i % 2 == 0 ? Op::sum : Op::mean}));
      expected = (i == 0 ? root + 1 : expected) * (i % 2 == 0 ? world.size() : 1);
    }
    for (Work& work : works) work.wait();
    EXPECT_THAT(data, Each(expected));
  });
}

TEST_P(Asynchronous, ACallReadsWhatAnEarlierOneWrites) {
  on_every_rank([](Group& world) {
    std::vector<double> a(3000, world.rank() + 1.0), b(3000), c(3000 * static_cast<std::size_t>(world.size()));
    Work first = world.start(AllReduce{.data = a, .out = b});
    Work second = world.start(Broadcast{.data = a, .root = world.size() - 1});
    Work third = world.start(AllGather{.data = b, .out = c});
    third.wait();
    second.wait();
    first.wait();
    EXPECT_THAT(a, Each(world.size()));
    EXPECT_THAT(c, Each(world.size() * (world.size() + 1) / 2.0));
  });
}

TEST_P(Asynchronous, ManyCallsMayBeUnderWayAndBeWaitedForInAnyOrder) {
  on_every_rank([&](Group& world) {
    std::vector<std::vector<int>> data;
    for (int i = 0; i < 100; ++i) data.emplace_back(i % 10 == 0 ? 30'000 : 5, i);
    std::vector<Work> works;
    for (auto& each : data) works.push_back(world.start(AllReduce{.data = each}));
    std::vector<std::size_t> order(works.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), Random(seed_of_run() + static_cast<std::uint64_t>(world.rank())));
    for (const std::size_t i : order) works[i].wait();
    for (int i = 0; i < 100; ++i) EXPECT_THAT(data[static_cast<std::size_t>(i)], Each(i * world.size()));
  });
}

TEST_P(Asynchronous, GroupsMayBeUsedInOppositeOrderOnDifferentRanks) {
  on_every_rank([](Group& world) {
    Group first = world.split(0), second = world.split(0, -world.rank());
    for (const std::size_t count : {1u, 200'000u}) {
      std::vector<int> a(count, 1), b(count, 2);
      const auto start_first = [&] { return first.start(AllReduce{.data = a}); };
      const auto start_second = [&] { return second.start(AllReduce{.data = b}); };
      if (world.rank() % 2 == 0) {
        Work one = start_first();
        Work two = start_second();
        one.wait();
        two.wait();
      } else {
        Work two = start_second();
        Work one = start_first();
        two.wait();
        one.wait();
      }
      EXPECT_THAT(a, Each(world.size()));
      EXPECT_THAT(b, Each(2 * world.size()));
    }
  });
}

TEST_P(Asynchronous, ABlockingCallOnOneGroupServesTheOthersMeanwhile) {
  on_every_rank([](Group& world) {
    Group other = world.split(0);
    std::vector<int> slow(100'000, 1), quick{1};
    if (world.rank() == 0) {  // blocks in the world while the others still need it in `other`
      Work work = other.start(AllReduce{.data = slow});
      world.all_reduce(quick);
      work.wait();
    } else {
      Work work = other.start(AllReduce{.data = slow});
      work.wait();
      world.all_reduce(quick);
    }
    EXPECT_THAT(slow, Each(world.size()));
    EXPECT_THAT(quick, ElementsAre(world.size()));
  });
}

TEST_P(Asynchronous, OverlappingGroupsWorkSideBySide) {
  on_every_rank([](Group& world) {
    // Every pair of adjacent ranks is a group; each rank is in two, and starts them in the order of its own choice.
    if (world.size() < 2) return;
    std::vector<std::optional<Group>> pairs(2);
    for (int left = 0; left < world.size() - 1; ++left) {
      const std::array<int, 2> members{left, left + 1};
      if (world.rank() == left) pairs[1] = world.subgroup(members);
      if (world.rank() == left + 1) pairs[0] = world.subgroup(members);
    }
    if (world.rank() % 2 == 0) std::swap(pairs[0], pairs[1]);
    std::array<std::vector<int>, 2> data{std::vector<int>(20'000, 1), std::vector<int>(20'000, 1)};
    std::vector<Work> works;
    for (std::size_t i = 0; i < 2; ++i) {
      if (pairs[i]) works.push_back(pairs[i]->start(AllReduce{.data = data[i]}));
    }
    for (Work& work : works) work.wait();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_THAT(data[i], Each(pairs[i] ? 2 : 1));
  });
}

INSTANTIATE_TEST_SUITE_P(Contract, Asynchronous, testing::ValuesIn(worlds({1, 2, 4})), world_name);
INSTANTIATE_TEST_SUITE_P(Extended, Asynchronous, testing::ValuesIn(extended_worlds({2, 3})), world_name);

class Polled : public InWorld {};

TEST_P(Polled, CallsEndWhileTheirRankOnlyTestsThem) {
  on_every_rank([](Group& world) {
    std::vector<int> data(100'000, 1);
    Work work = world.start(AllReduce{.data = data});
    while (!work.test()) {  // ends by the call's own deadline at the latest
    }
    EXPECT_THAT(data, Each(world.size()));
  });
}

TEST_P(Polled, CallsGoOnWhileTheirRankIsBusyElsewhere) {
  std::atomic<int> ended = 0;
  on_every_rank([&](Group& world) {
    std::vector<int> data(100'000, 1);
    Work work = world.start(AllReduce{.data = data});
    work.then([&](std::exception_ptr) { ended.fetch_add(1); });
    // No thread waits or tests: the progress thread makes progress.
    const TimePoint limit = deadline_after(steady_clock().now(), 60s);
    while (ended < world.size() && steady_clock().now() < limit) std::this_thread::yield();
    EXPECT_EQ(ended, world.size());
    work.wait();
    EXPECT_THAT(data, Each(world.size()));
  });
}

// In virtual time a rank that does not sleep stops the world: only over TCP.
INSTANTIATE_TEST_SUITE_P(Contract, Polled,
                         testing::Values(WorldParam{WorldKind::tcp, 1}, WorldParam{WorldKind::tcp, 2},
                                         WorldParam{WorldKind::tcp, 3}, WorldParam{WorldKind::shm, 2},
                                         WorldParam{WorldKind::shm, 3}),
                         world_name);

}  // namespace
}  // namespace tutti::contract
