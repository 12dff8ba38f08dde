// life_forks_test.cpp: a C++ program may fork in any state: handles are dead in the child, and the parent notices nothing.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "outcomes.hpp"
#include "rank_lives.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using Kind = Outcome::Kind;

// What is under way in the parent, and what the child does before it ends.
enum class State { idle, work, receive, blocked };
enum class Child { leaves, exits, destroys, calls, waits, tests, joins, finalizes };
constexpr std::array states{State::idle, State::work, State::receive, State::blocked};
constexpr std::array children{Child::leaves, Child::exits, Child::destroys, Child::calls,
                              Child::waits,  Child::tests, Child::joins,    Child::finalizes};

bool is_refused(const std::function<void()>& call) {
  const Outcome outcome = outcome_of(call);
  return outcome.kind == Kind::invalid_argument && outcome.text.find("fork") != std::string::npos;
}

[[noreturn]] void be_a_child(Child what, Group& world, std::optional<Work>& work) {
  bool is_right = true;
  switch (what) {
    case Child::leaves: _exit(0);
    case Child::exits: break;
    case Child::destroys:
      work.reset();
      world = Group();
      break;
    case Child::calls: is_right = is_refused([&] { world.barrier(); }); break;
    case Child::waits: is_right = !work || is_refused([&] { work->wait(3s); }); break;
    case Child::tests: is_right = !work || is_refused([&] { static_cast<void>(work->test()); }); break;
    case Child::joins: is_right = is_refused([] { static_cast<void>(init()); }); break;
    case Child::finalizes: finalize(); break;
  }
  std::exit(is_right ? 0 : wrong_status);
}

struct Sum {
  explicit Sum(Group& world) : group(world) {}
  void run() { group.all_reduce(data); }
  [[nodiscard]] bool is_right() const { return data[0] == group.size() && data[9999] == group.size(); }
  Group& group;
  std::vector<int> data = std::vector<int>(10'000, 1);
};

int parent(const RankLives& lives, Group& world, State state, Child child) {
  const std::string name = fmt::format("{}-{}", static_cast<int>(state), static_cast<int>(child));
  Sum sum(world);
  std::vector<int> message(10'000, 0);
  std::optional<Work> work;
  std::thread thread;
  if (state == State::work) work = world.start(AllReduce{.data = sum.data});
  if (state == State::receive) work = world.irecv(message, 1, {.tag = static_cast<std::uint32_t>(child)});
  if (state == State::blocked) thread = std::thread([&] { sum.run(); });
  const pid_t process = fork();
  if (process == 0) be_a_child(child, world, work);
  const int status = RankLives::status_of(process);
  lives.mark(name);
  if (work) work->wait();
  if (thread.joinable()) thread.join();
  const bool is_sum = state == State::work || state == State::blocked;
  const bool is_right = !(is_sum && !sum.is_right()) && !(state == State::receive && message[9999] != 6);
  if (status != 0) std::fprintf(stderr, "state and child %s: status %d\n", name.c_str(), status);
  return status == 0 && is_right ? 0 : wrong_status;
}

int peer(const RankLives& lives, Group& world, State state, Child child) {
  lives.wait_for(fmt::format("{}-{}", static_cast<int>(state), static_cast<int>(child)));
  Sum sum(world);
  if (state == State::work || state == State::blocked) {
    sum.run();
    return sum.is_right() ? 0 : wrong_status;
  }
  std::vector<int> message(10'000, 6);
  if (state == State::receive && world.rank() == 1) world.send(message, 0, {.tag = static_cast<std::uint32_t>(child)});
  return 0;
}

TEST(LifeForks, InEveryStateTheChildsHandlesAreDeadAndTheParentGoesOn) {
  RankLives lives(3);
  EXPECT_THAT(lives.run([&](Group& world) {
    for (const State state : states) {
      for (const Child child : children) {
        const int status = world.rank() == 0 ? parent(lives, world, state, child) : peer(lives, world, state, child);
        if (status != 0) return status;
      }
    }
    Sum last(world);
    last.run();
    return last.is_right() ? 0 : wrong_status;
  }),
              Each(0));
}

TEST(LifeForks, HandlesOfAJobThatWasLeftAreDeadInTheChildToo) {
  RankLives lives(2);
  EXPECT_THAT(lives.run([&](Group& world) {
    Sum sum(world);
    sum.run();
    std::optional<Buffer<float>> shared = world.empty<float>(1000);
    finalize();
    const pid_t process = fork();
    if (process == 0) {
      const bool is_right = is_refused([&] { world.barrier(); });
      shared.reset();
      world = Group();
      std::exit(is_right ? 0 : wrong_status);
    }
    return RankLives::status_of(process);
  }),
              Each(0));
}

struct Counted {
  int value = 0;
};

// What a program's own function does inside a call, and what another thread does meanwhile, must not keep a fork from happening: they may
// wait for each other, as threads of a program in Python do for its lock.
TEST(LifeForks, AForkWaitsForNoCall) {
  RankLives lives(2);
  EXPECT_THAT(lives.run([&](Group& world) {
    static std::atomic<int> inside, ended;
    const bool forks = world.rank() == 0;
    const auto wait_for_child = [](Counted a, Counted b) {
      const int round = ++inside;
      while (ended < round) usleep(100);
      return Counted{a.value + b.value};
    };
    const auto fork_here = [](Counted a, Counted b) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      return Counted{RankLives::status_of(child) == 0 ? a.value + b.value : -1000};
    };
    const auto add = [](Counted a, Counted b) { return Counted{a.value + b.value}; };
    const auto begin = std::chrono::steady_clock::now();
    bool is_right = true;
    for (int round = 1; round <= 12; ++round) {
      std::vector<Counted> data(1, Counted{1});
      std::thread other([&] {
        forks ? world.all_reduce(data, {.op = op(wait_for_child)}) : world.all_reduce(data, {.op = op(add)});
      });
      if (forks) {
        while (inside < round) usleep(100);
        const pid_t child = fork();
        if (child == 0) std::exit(0);
        is_right = is_right && RankLives::status_of(child) == 0;
        ended = round;
      }
      other.join();
      forks ? world.all_reduce(data, {.op = op(fork_here)}) : world.all_reduce(data, {.op = op(add)});
      is_right = is_right && data[0].value == 4;
    }
    return is_right && std::chrono::steady_clock::now() - begin < 12s ? 0
                                                                      : wrong_status;  // 24 s, with a second's patience
  }),
              Each(0));
}

}  // namespace
}  // namespace tutti::contract
