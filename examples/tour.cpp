// tour.cpp: every verb once, on ranks that this program starts itself; each result is checked, and timed.
// SPDX-License-Identifier: Apache-2.0
//
//   tour                      4 ranks on this machine
//   tour --ranks 8            more of them
//   tour --count 1000000      larger arrays (elements of float per rank)
//
// Under a launcher (torchrun, mpirun, srun, …) it joins that job instead of starting ranks.
#include <fmt/format.h>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "local_ranks.hpp"

namespace {

using tutti::Group;
using Floats = std::vector<float>;

struct Stop {
  std::string verb;
  std::string shows;                // what the caller reads in the table
  std::function<bool(Group&)> run;  // true if the result is right on this rank
};

Floats filled(std::int64_t count, float value) { return Floats(static_cast<std::size_t>(count), value); }

bool all_are(const Floats& values, float expected) {
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == expected; });
}

float sum_of_ranks(int size) { return static_cast<float>(size * (size + 1) / 2); }

/// Block i of `values` (one per rank, equally long) holds i + 1 everywhere.
bool blocks_count_up(const Floats& values, int size) {
  const std::size_t each = values.size() / static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<float>(i / each + 1)) return false;
  }
  return true;
}

Floats counting_blocks(std::int64_t each, int size) {
  Floats values;
  for (int i = 0; i < size; ++i) values.insert(values.end(), static_cast<std::size_t>(each), static_cast<float>(i + 1));
  return values;
}

std::vector<Stop> collectives(std::int64_t n) {
  const auto mine = [n](Group& g) { return filled(n, static_cast<float>(g.rank() + 1)); };
  return {
      {"all_reduce", "sum over all ranks, everywhere",
       [=](Group& g) {
         auto x = mine(g);
         g.all_reduce(x);
         return all_are(x, sum_of_ranks(g.size()));
       }},
      {"all_reduce", "the mean",
       [=](Group& g) {
         auto x = mine(g);
         g.all_reduce(x, {.op = tutti::Op::mean});
         return all_are(x, sum_of_ranks(g.size()) / static_cast<float>(g.size()));
       }},
      {"reduce", "the maximum, at the last rank",
       [=](Group& g) {
         auto x = mine(g);
         g.reduce(x, {.root = g.size() - 1, .op = tutti::Op::max});
         return g.rank() != g.size() - 1 || all_are(x, static_cast<float>(g.size()));
       }},
      {"broadcast", "rank 0's array, everywhere",
       [=](Group& g) {
         auto x = mine(g);
         g.broadcast(x);
         return all_are(x, 1);
       }},
      {"all_gather", "all arrays joined, everywhere",
       [=](Group& g) {
         const auto x = mine(g);
         return blocks_count_up(g.all_gather(x), g.size());
       }},
      {"gather", "all arrays joined, at rank 0",
       [=](Group& g) {
         const auto x = mine(g);
         const auto all = g.gather(x);
         return g.rank() == 0 ? blocks_count_up(all, g.size()) : all.empty();
       }},
      {"reduce_scatter", "each rank its slice of the sum",
       [=](Group& g) {
         const auto x = filled(n * g.size(), 1);
         return all_are(g.reduce_scatter(x), static_cast<float>(g.size()));
       }},
      {"scatter", "each rank its slice of rank 0's array",
       [=](Group& g) {
         const auto x = g.rank() == 0 ? counting_blocks(n, g.size()) : Floats{};
         return all_are(g.scatter_from(x), static_cast<float>(g.rank() + 1));
       }},
      {"all_to_all", "slice i of every rank, to rank i",
       [=](Group& g) {
         const auto x = filled(n * g.size(), static_cast<float>(g.rank() + 1));
         return blocks_count_up(g.all_to_all(x), g.size());
       }},
      {"scan", "the sum over ranks 0 … r",
       [=](Group& g) {
         auto x = mine(g);
         g.scan(x);
         return all_are(x, sum_of_ranks(g.rank() + 1));
       }},
      {"exscan", "the sum over ranks 0 … r − 1",
       [=](Group& g) {
         auto x = mine(g);
         g.exscan(x);
         return all_are(x, sum_of_ranks(g.rank()));
       }},
      {"permute", "everyone's array one rank further",
       [=](Group& g) {
         tutti::Pairs pairs;
         for (int i = 0; i < g.size(); ++i) pairs.emplace_back(i, (i + 1) % g.size());
         const auto x = mine(g);
         Floats y(x.size());
         g.permute(x, y, pairs);
         return all_are(y, static_cast<float>((g.rank() + g.size() - 1) % g.size() + 1));
       }},
      {"barrier", "nobody goes on before all are there",
       [](Group& g) {
         g.barrier();
         return true;
       }},
  };
}

std::vector<Stop> messages_and_groups(std::int64_t n) {
  const auto mine = [n](Group& g) { return filled(n, static_cast<float>(g.rank() + 1)); };
  return {
      {"send, recv", "from rank 0 around the ring and back",
       [=](Group& g) {
         auto x = mine(g);
         if (g.size() == 1) return true;
         if (g.rank() == 0) g.send(x, 1);
         g.recv(x, (g.rank() + g.size() - 1) % g.size());
         if (g.rank() != 0) g.send(x, (g.rank() + 1) % g.size());
         return all_are(x, 1);
       }},
      {"sendrecv", "to the right while from the left",
       [=](Group& g) {
         const auto x = mine(g);
         Floats y(x.size());
         const int left = (g.rank() + g.size() - 1) % g.size();
         g.sendrecv(x, (g.rank() + 1) % g.size(), y, left);
         return all_are(y, static_cast<float>(left + 1));
       }},
      {"start, wait", "two all_reduces under way at once",
       [=](Group& g) {
         auto x = mine(g), y = filled(n, 2);
         tutti::Work first = g.start(tutti::AllReduce{.data = x});
         tutti::Work second = g.start(tutti::AllReduce{.data = y, .op = tutti::Op::product});
         second.wait();
         first.wait();
         return all_are(x, sum_of_ranks(g.size())) && all_are(y, static_cast<float>(1 << g.size()));
       }},
      {"split", "even and odd ranks each for themselves",
       [=](Group& g) {
         Group half = g.split(g.rank() % 2);
         Floats x = filled(n, 1);
         half.all_reduce(x);
         return all_are(x, static_cast<float>(half.size()));
       }},
  };
}

/// One line of the table: the slowest rank's time counts, and all must be right.
bool visit(Group& world, const Stop& stop) {
  constexpr int repeats = 5;
  double microseconds = 1e30;
  bool right = true;
  for (int i = 0; i < repeats; ++i) {
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    right = stop.run(world) && right;
    double taken = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::vector<double> slowest{taken};
    world.all_reduce(slowest, {.op = tutti::Op::max});
    microseconds = std::min(microseconds, slowest[0]);
  }
  std::vector<std::int32_t> all_right{right ? 1 : 0};
  world.all_reduce(all_right, {.op = tutti::Op::min});
  if (world.rank() == 0) {
    fmt::print("  {:<14} {:<42} {:>10.0f} µs   {}\n", stop.verb, stop.shows, microseconds,
               all_right[0] ? "right" : "WRONG");
  }
  return all_right[0] == 1;
}

int tour(std::int64_t count) {
  Group world = tutti::init({.init_method = examples::meeting_point()});
  if (world.rank() == 0) {
    fmt::print("{} rank{}, {} floats each; the slowest rank's best of 5 runs\n\n", world.size(),
               world.size() == 1 ? "" : "s", count);
  }
  bool right = true;
  for (const auto& stops : {collectives(count), messages_and_groups(count)}) {
    for (const Stop& stop : stops) right = visit(world, stop) && right;
  }
  if (world.rank() == 0)
    fmt::print("\n{}\n", right ? "Every verb gave the right result on every rank." : "Some results were wrong.");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 4;
  std::int64_t count = 65536;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--ranks") ranks = std::atoi(argv[i + 1]);
    if (option == "--count") count = std::atoll(argv[i + 1]);
  }
  try {
    if (!examples::under_a_launcher()) return examples::start_ranks(ranks, argv);
    return tour(count);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
