// waiting_test.cpp: waiting for all, for any, and in a coroutine.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/tutti.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;

class Waiting : public InWorld {};

TEST_P(Waiting, AllOfThemHaveEndedAfterwards) {
  on_every_rank([](const Group& world) {
    std::vector<std::vector<int>> arrays(5, std::vector<int>(100, 1));
    std::vector<Work> works;
    for (auto& array : arrays) works.push_back(world.start(AllReduce{.data = array}));
    works.emplace_back();  // an empty one is no call
    wait_all(works);
    for (const auto& array : arrays) EXPECT_THAT(array, Each(world.size()));
    std::vector<int> x(3, 1), y(3, 2);
    Work a = world.start(AllReduce{.data = x}), b = world.start(AllReduce{.data = y});
    wait_all(a, b);
    EXPECT_EQ(x[0] * 2, y[0]);
    wait_all(std::span<Work>());
  });
}

TEST_P(Waiting, AnyOfThemIsTheOneThatHasEnded) {
  on_every_rank([](const Group& world) {
    if (world.size() < 2) return;
    std::vector<int> never(1), soon(1, 1);
    std::vector<Work> works;
    works.emplace_back();
    works.push_back(
        const_cast<Group&>(world).start(Receive{.data = never, .from = (world.rank() + 1) % world.size(), .tag = 5}));
    works.push_back(world.start(AllReduce{.data = soon}));
    const std::size_t first = wait_any(works, 30s);
    EXPECT_EQ(first, 2u);
    works[first].wait();
    works[first] = Work();
    world.barrier();  // nobody sends before all have looked
    const std::vector<int> message{7};
    const_cast<Group&>(world).send(message, (world.rank() + world.size() - 1) % world.size(), {.tag = 5});
    EXPECT_EQ(wait_any(works), 1u);
    works[1] = Work();
    EXPECT_EQ(never[0], 7);
    EXPECT_THROW((void)wait_any(works), InvalidArgument);
  });
}

TEST_P(Waiting, ATimeoutEndsTheWaitAndNotTheCalls) {
  on_every_rank([](const Group& world) {
    if (world.size() < 2) return;
    std::vector<int> data(1);
    std::vector<Work> works;
    works.push_back(
        const_cast<Group&>(world).start(Receive{.data = data, .from = (world.rank() + 1) % world.size(), .tag = 6}));
    EXPECT_THROW(wait_all(works, 5ms), Timeout);
    EXPECT_THROW((void)wait_any(works, 0.005s), Timeout);
    world.barrier();
    const std::vector<int> message{9};
    const_cast<Group&>(world).send(message, (world.rank() + world.size() - 1) % world.size(), {.tag = 6});
    wait_all(works, 30s);
    EXPECT_EQ(data[0], 9);
  });
}

#if defined(__cpp_impl_coroutine)
/// A coroutine that runs until it first waits, and says when it is over.
struct Task {
  struct promise_type {
    std::atomic<int>* over = nullptr;
    explicit promise_type(const Group&, std::vector<int>&, std::atomic<int>& counter) : over(&counter) {}
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept {
      over->fetch_add(1);
      return {};
    }
    void return_void() {}
    void unhandled_exception() { ADD_FAILURE() << "the coroutine threw"; }
  };
};

Task reduce_twice(const Group& world, std::vector<int>& data, std::atomic<int>&) {
  Work first = world.start(AllReduce{.data = data});
  co_await first;
  co_await world.start(AllReduce{.data = data});
}

Task fail(const Group&, std::vector<int>& data, std::atomic<int>& over);
Task fail(const Group& world, std::vector<int>& data, std::atomic<int>& over) {
  try {
    co_await world.start(AllReduce{.data = data});
    ADD_FAILURE() << "the group was aborted";
  } catch (const Aborted&) {
    over.fetch_add(10);
  }
}

class Coroutine : public InWorld {};

TEST_P(Coroutine, GoesOnWhenTheCallHasEnded) {
  on_every_rank([](const Group& world) {
    std::vector<int> data(1000, 1);
    std::atomic<int> over = 0;
    reduce_twice(world, data, over);
    for (int i = 0; i < 3000 && over == 0; ++i) std::this_thread::sleep_for(10ms);
    ASSERT_EQ(over, 1);
    EXPECT_THAT(data, Each(world.size() * world.size()));
    world.barrier();
  });
}

class FailingCoroutine : public InWorld {};

TEST_P(FailingCoroutine, GetsTheErrorWhereItWaits) {
  on_every_rank([](const Group& world) {
    const Group broken = world.split(0);
    std::vector<int> data(1000, 1);
    std::atomic<int> over = 0;
    if (world.rank() == 0) {
      broken.abort("on purpose");
      return;
    }
    try {
      fail(broken, data, over);
    } catch (const Aborted&) {  // it was known before the call began
      return;
    }
    for (int i = 0; i < 3000 && over < 11; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(over, 11);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Coroutine, testing::ValuesIn(thread_worlds({1, 2, 3})), world_name);
INSTANTIATE_TEST_SUITE_P(Worlds, FailingCoroutine, testing::ValuesIn(thread_worlds({2, 3})), world_name);
#endif

INSTANTIATE_TEST_SUITE_P(Worlds, Waiting, testing::ValuesIn(worlds({1, 2, 3})), world_name);

}  // namespace
}  // namespace tutti::contract
