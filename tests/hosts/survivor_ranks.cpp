// survivor_ranks.cpp: ranks that lose others, shrink their group and go on.
// SPDX-License-Identifier: Apache-2.0
//
//   survivor_ranks STEPS [RANK:STEP[:shrink]]…
//
// All ranks add numbers up, STEPS times. At STEP the rank kills itself; with ":shrink" it does so a little after it has begun
// to shrink the group for the first time. A step takes STEP_MS at least, if that is set. Who raises PeerLost prints its reason and how long ago the first rank died, by
// the clock that the processes of a machine share, shrinks the group and goes on. Sums are checked in every step. A rank that is left
// in a part that may not go on by itself says so, and ends with status 3.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/init.hpp>

namespace {

using namespace tutti;

struct Death {
  int step = -1;
  bool during_shrink = false;
};

std::map<int, Death> read_deaths(int count, char** words) {
  std::map<int, Death> deaths;
  for (int i = 2; i < count; ++i) {
    std::istringstream in(words[i]);
    std::string rank, step, when;
    std::getline(in, rank, ':');
    std::getline(in, step, ':');
    std::getline(in, when);
    deaths[std::atoi(rank.c_str())] = {.step = std::atoi(step.c_str()), .during_shrink = when == "shrink"};
  }
  return deaths;
}

long long now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void die() {
  fmt::print("dies at {} ms\n", now_ms());
  std::fflush(stdout);
  kill(getpid(), SIGKILL);
  std::abort();
}

void step(Group& group, int number) {
  std::vector<double> values(1000, group.rank() + 1.0);
  group.all_reduce(values);
  const double expected = group.size() * (group.size() + 1) / 2.0;
  for (const double value : values) {
    if (value != expected) throw std::runtime_error(fmt::format("step {}: {} instead of {}", number, value, expected));
  }
}

void say_under_way() {
  fmt::print("under way\n");
  std::fflush(stdout);
}

/// Some ranks may have ended a step that others have not.
int lowest(Group& group, int number) {
  std::vector<int> at = {number};
  group.all_reduce(at, {.op = Op::min});
  return at.front();
}

int run(int count, char** words) {
  const int steps = std::atoi(words[1]);
  const auto deaths = read_deaths(count, words);
  const char* const pause = std::getenv("STEP_MS");
  const int step_ms = pause ? std::atoi(pause) : 0;
  Group world = init();
  Group group = world;
  const auto mine = deaths.find(world.rank());
  int number = 0;
  bool has_agreed = true;
  while (number < steps) {
    if (mine != deaths.end() && !mine->second.during_shrink && mine->second.step == number) die();
    try {
      if (!has_agreed) number = lowest(group, number);
      has_agreed = true;
      step(group, number);
      if (++number == 5 && world.rank() == 0) say_under_way();
      std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
    } catch (const PeerLost& lost) {
      fmt::print("lost rank {} on {} at {} ms: {}\n", lost.rank(), lost.host(), now_ms(), lost.reason());
      std::thread death;
      if (mine != deaths.end() && mine->second.during_shrink) {
        death = std::thread([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          die();
        });
      }
      group = group.shrink({.timeout = std::chrono::seconds(30)});
      if (death.joinable()) death.join();
      has_agreed = false;
    }
  }
  fmt::print("rank {} ended in a group of {}\n", world.rank(), group.size());
  return 0;
}

}  // namespace

int main(int count, char** words) try { return run(count, words); } catch (const PeerLost& lost) {
  fmt::print("does not go on: {}\n", lost.what());
  return 3;
}
