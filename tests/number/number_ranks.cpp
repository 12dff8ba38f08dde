// number_ranks.cpp: what every rank of a large job runs: join, make calls and check their data, leave.
// SPDX-License-Identifier: Apache-2.0
//
//   number_ranks every [finalize]   every verb once, messages, groups from groups; leaves by returning, or by finalize()
//   number_ranks bare               one all_reduce and return: nothing holds the ranks together at the end
//   number_ranks large              calls of 1 MB: over a slow link each takes longer than silence is borne
//   number_ranks store              uses the job's store and leaves, each rank when it is done: rank 0 and its keeper of the day, too
//   number_ranks init               joins, meets the others once and returns: for bench/init_time.py
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tutti/init.hpp>
#include <tutti/store.hpp>

#include "base/random.hpp"
#include "contract_case.hpp"

namespace {

using namespace tutti;
using contract::Case;

constexpr auto timeout = std::chrono::seconds(60);

void check(bool right, const std::string& what) {
  if (!right) throw std::runtime_error("wrong data: " + what);
}

void make(Group& group, const Case& call) {
  if (const auto difference = contract::perform(group, call)) throw std::runtime_error("wrong data: " + *difference);
}

/// Every collective, one blocking and one asynchronous, rooted ones at the first and at the last rank.
void every_verb(Group& group, std::uint64_t seed) {
  const auto last = static_cast<std::uint32_t>(group.size() - 1);
  for (int verb = 0; verb < static_cast<int>(Verb::send); ++verb) {
    make(group, {.verb = Verb(verb), .dtype = DType::int64, .length = 7, .root = last, .seed = seed++});
    make(group, {.verb = Verb(verb),
                 .dtype = DType::float32,
                 .op = Op::max,
                 .length = 300,
                 .asynchronous = true,
                 .seed = seed++});
  }
}

void messages(Group& group) {
  const int me = group.rank(), size = group.size();
  const auto value_of = [](int rank) { return std::vector<int>(100, 7 * rank + 1); };
  std::vector<int> mine = value_of(me), theirs(100);
  group.sendrecv(mine, (me + 1) % size, theirs, (me + size - 1) % size);
  check(theirs == value_of((me + size - 1) % size), "sendrecv around the ring");
  // Everyone to rank 0, which takes them as they come, and back.
  if (me != 0) {
    group.send(mine, 0, {.tag = 3});
    group.recv(theirs, 0, {.tag = 4});
    check(theirs == value_of(me), "what rank 0 sent back");
    return;
  }
  for (int i = 1; i < size; ++i) {
    const int source = group.recv(theirs, any_source, {.tag = 3}).source;
    check(theirs == value_of(source), fmt::format("what rank {} sent to rank 0", source));
    group.send(theirs, source, {.tag = 4});
  }
}

void groups(Group& world) {
  Group quarter = world.split(world.rank() % 4);
  every_verb(quarter, 1000);
  Group reversed = quarter.split(0, -quarter.rank());
  check(reversed.rank() == quarter.size() - 1 - quarter.rank(), "the rank in a reversed group");
  make(reversed, {.verb = Verb::all_gather, .length = 3, .seed = 7});
  std::vector<int> seconds;
  for (int rank = 0; rank < world.size(); rank += 2) seconds.push_back(rank);
  if (Group half = world.subgroup(seconds); half.rank() >= 0)
    make(half, {.verb = Verb::all_reduce, .length = 20, .seed = 8});
}

void large_calls(Group& world) {
  std::vector<float> x(250'000, 1.0f);
  world.all_reduce(x);
  for (const float value : x) check(value == static_cast<float>(world.size()), "all_reduce of ones");
  std::vector<float> last(250'000, static_cast<float>(world.rank()));
  world.broadcast(last, {.root = world.size() - 1});
  for (const float value : last) check(value == static_cast<float>(world.size() - 1), "broadcast from the last rank");
}

/// Every rank adds, takes a lock by compare_set, and waits for the key of a rank that may have left. The last rank knows the sums.
void use_store(Group& world) {
  const std::shared_ptr<Store> store = job_store(world);
  const auto by = [] { return steady_clock().now() + timeout; };
  const int me = world.rank(), size = world.size();
  Random random(std::random_device{}());
  const auto rounds = static_cast<int>(random.between(1, 30));
  const auto rest = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000))); };
  for (int round = 0; round < rounds; ++round) {
    store->add("rounds", 1, by());
    if (!random.chance(0.2)) continue;
    // Two counters that only the holder of a lock changes, one after the other.
    while (store->compare_set("lock", std::nullopt, std::to_string(me), by()) != std::to_string(me)) rest();
    const std::int64_t a = store->add("a", 1, by()), b = store->add("b", 1, by());
    check(a == b, "two counters under one lock");
    check(store->remove("lock", by()), "the lock");
    rest();
  }
  store->add("expected", rounds, by());
  store->set(fmt::format("of {}", me), std::string(random.below(40'000), 'x') + std::to_string(me), by());
  const int peer = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
  const std::string theirs = store->get(fmt::format("of {}", peer), by());
  check(theirs.substr(theirs.rfind('x') + 1) == std::to_string(peer), "what another rank has set");
  if (store->add("done", 1, by()) != size) return;
  check(store->get("rounds", by()) == store->get("expected", by()), "the sum of all rounds");
  for (int rank = 0; rank < size; ++rank) store->wait(fmt::format("of {}", rank), by());
}

int run(const std::string& mode, bool finalizes) {
  Group world = init({.timeout = timeout});
  if (mode == "every") {
    every_verb(world, 1);
    messages(world);
    groups(world);
  } else if (mode == "bare") {
    std::vector<float> x(1000, 1.0f);
    world.all_reduce(x);
    for (const float value : x) check(value == static_cast<float>(world.size()), "all_reduce of ones");
  } else if (mode == "large") {
    large_calls(world);
  } else if (mode == "store") {
    use_store(world);
  } else {
    world.barrier();
  }
  if (finalizes) finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode != "every" && mode != "bare" && mode != "large" && mode != "store" && mode != "init") {
    fmt::print(stderr, "usage: number_ranks every|bare|large|store|init [finalize]\n");
    return 2;
  }
  try {
    return run(mode, argc > 2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
