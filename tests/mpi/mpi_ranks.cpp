// mpi_ranks.cpp: what ranks on an engine of clusters, MPI or UCX, promise beyond the contract's cases: mismatches, refusals, deadlines, losses, groups.
// SPDX-License-Identifier: Apache-2.0
//
//   mpirun -n 3 mpi_ranks SCENARIO [BACKEND]     every rank prints "rank R: right", or what went wrong, and fails
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/init.hpp>

namespace {

using namespace std::chrono_literals;
using namespace tutti;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected that " + what);
}

void expect_text(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, fmt::format("\"{}\" has \"{}\" in it", text, part));
}

/// The text of the error that `call` ends with.
template <class Kind>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  throw std::runtime_error("expected that the call fails");
}

/// Ranks that make different calls all hear of it, in whichever way the calls differ.
void differ(Group& world) {
  const bool odd = world.rank() == 1;
  std::vector<float> data(1000, 1), other(999, 1);
  std::vector<int> numbers(1000, 1);
  const std::vector<std::function<void(Group&)>> programs = {
      [&](Group& group) { odd ? group.all_reduce(other) : group.all_reduce(data); },
      [&](Group& group) { odd ? group.all_reduce(numbers) : group.all_reduce(data); },
      [&](Group& group) { odd ? group.broadcast(data) : group.all_reduce(data); },
      [&](Group& group) { odd ? group.barrier() : group.all_reduce(data); },
      [&](Group& group) { group.all_reduce(data, {.op = odd ? Op::max : Op::sum}); },
      [&](Group& group) { group.broadcast(data, {.root = odd ? 1 : 0}); },
  };
  for (const auto& program : programs) {
    Group group = world.split(0);
    const std::string text = error_of<Mismatch>([&] { program(group); });
    expect_text(text, "#");
    const std::string again = error_of<Mismatch>([&] { group.barrier(); });
  }
}

/// What each rank sends to each is compared pair by pair. No rank gives MPI its data before all pairs fit, so MPI can be finalised.
void differ_in_pairs(Group& world) {
  const bool odd = world.rank() == 1;
  Group group = world.split(0);
  const auto size = static_cast<std::size_t>(world.size());
  Sizes sent(size, 10), received(size, odd ? 11 : 10);
  received[static_cast<std::size_t>(world.rank())] = 10;  // its own part: no other rank could disagree
  const std::vector<int> input(10 * size, 1);
  const std::string text = error_of<Mismatch>(
      [&] { static_cast<void>(group.all_to_all(input, {.split_sizes = sent, .recv_sizes = received})); });
  expect_text(text, "rank 0 sends rank 1 a part of 10 elements, but rank 1 expects one of 11");
}

/// A rank that refuses its part of a call leaves the group usable, also where the others wait in MPI.
void refuse(Group& world) {
  for (int round = 0; round < 20; ++round) {
    std::vector<float> data(static_cast<std::size_t>(1 + 500 * (round % 2)), 1), wrong(3);
    const int refusing = round % world.size();
    if (world.rank() == refusing) {
      static_cast<void>(error_of<InvalidArgument>([&] { world.all_reduce(data, wrong); }));
    } else {
      expect_text(error_of<Aborted>([&] { world.all_reduce(data); }), "the group stays usable");
    }
    if (round % 3 == 2) continue;  // two refused calls in a row
    world.all_reduce(data);
    expect(data[0] == static_cast<float>(world.size()), "the call after the refused one is right");
  }
}

/// A call that is given up leaves the caller's memory alone, whatever MPI does later.
void give_up(Group& world) {
  Group group = world.split(0);
  std::vector<double> data(100'000, 7);
  if (world.rank() == 1) {
    std::vector<int> nothing(1);
    static_cast<void>(error_of<Timeout>([&] { group.recv(nothing, 0, {.timeout = 3s}); }));
  } else {
    const std::string text = error_of<Timeout>([&] { group.all_reduce(data, {.timeout = 1s}); });
    expect_text(text, "waiting for rank 1");
  }
  world.barrier();
  for (int i = 0; i < 100; ++i) world.barrier();  // MPI makes progress
  expect(std::ranges::all_of(data, [](double value) { return value == 7; }), "the array is as it was");
}

/// More groups, one after the other, than MPI has communicators.
void make_groups(Group& world) {
  for (int round = 0; round < 3000; ++round) {
    Group group = world.split(0, -world.rank());
    std::vector<int> data(1, world.rank());
    group.all_reduce(data);
    expect(data[0] == world.size() * (world.size() - 1) / 2, "every group gives the right sum");
  }
}

/// Works that were started together, of several groups, end in any order.
void work_together(Group& world) {
  Group other = world.split(0, -world.rank());
  std::vector<std::vector<int>> arrays(60, std::vector<int>(5000, 1));
  std::vector<Work> works;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Group& group = (i + static_cast<std::size_t>(world.rank())) % 2 == 0 ? world : other;
    works.push_back(group.start(AllReduce{.data = arrays[i]}));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
  for (const auto& array : arrays)
    expect(array[4999] == world.size() && array[0] == world.size(), "every sum is right");
}

/// A rank that dies while the others wait for it in MPI.
void die(Group& world) {
  std::vector<float> data(100'000, 1);
  world.all_reduce(data);
  if (world.rank() == 1) {
    Work work = world.start(AllReduce{.data = data});
    raise(SIGKILL);
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = error_of<PeerLost>([&] {
    for (;;) world.all_reduce(data);
  });
  expect_text(text, "rank 1");
  expect(std::chrono::steady_clock::now() - begin < 30s, "the loss is noticed in time");
}

/// Groups of one job on several backends: what they give is the same, and errors say which backend it was.
void several_backends(Group& world) {
  const Group on_mpi = world.split(0, 0, {.backend = "mpi"}), plans = world.split(0, 0, {.backend = "native"}),
              fast = world.split(0, 0, {.backend = "shm"});
  expect(on_mpi.backend() == "mpi", "a group uses mpi");
  expect(plans.backend() == "native", "a group uses native");
  expect(fast.backend() == "shm", "a group uses shm");
  const int size = world.size();
  for (int round = 0; round < 50; ++round) {
    for (const Group* group : {&on_mpi, &plans, &fast}) {
      std::vector<int> data(static_cast<std::size_t>(1 + 1000 * (round % 3)), group->rank());
      group->all_reduce(data);
      expect(data[0] == size * (size - 1) / 2, fmt::format("the sum over {} is right", group->backend()));
    }
  }
  const Group part = on_mpi.subgroup({1, 0});
  expect(part.backend() == (part.rank() < 0 ? "none" : "mpi"), "a group of a group on mpi uses mpi");
  if (part.rank() >= 0) expect(part.all_reduce(1) == 2, "it works");
  std::vector<float> data(1000, 1);
  if (world.rank() != 1) {
    expect_text(error_of<Timeout>([&] { on_mpi.all_reduce(data, {.timeout = 1s}); }), "MPI (");
  } else {
    static_cast<void>(error_of<Timeout>([&] { static_cast<void>(on_mpi.recv<int>(0, {.timeout = 3s})); }));
  }
}

/// A group of a part of the ranks cannot initialise MPI, which waits for all; afterwards, the whole job on it can.
void mpi_for_a_part(Group& world) {
  if (world.rank() < 2) {
    const std::string text = error_of<Error>([&] { static_cast<void>(world.subgroup({0, 1}, {.backend = "mpi"})); });
    expect_text(text, "MPI_Init waits for all ranks of the job");
  }
  world.barrier();
  const Group all = world.split(0, 0, {.backend = "mpi"});
  expect(all.all_reduce(1) == world.size(), "a group of all ranks works");
  if (world.rank() < 2) {
    const Group part = world.subgroup({0, 1}, {.backend = "mpi"});
    expect(part.backend() == "mpi" && part.all_reduce(1) == 2, "then a group of some does, too");
  }
}

const std::map<std::string, void (*)(Group&)> scenarios = {{"several_backends", several_backends},
                                                           {"mpi_for_a_part", mpi_for_a_part},
                                                           {"differ", differ},
                                                           {"differ_in_pairs", differ_in_pairs},
                                                           {"refuse", refuse},
                                                           {"give_up", give_up},
                                                           {"make_groups", make_groups},
                                                           {"work_together", work_together},
                                                           {"die", die}};

int run(const std::string& name, const std::string& backend) {
  int rank = -1;
  try {
    Group world = init({.timeout = 60s});
    rank = world.rank();
    expect(world.backend() == backend, fmt::format("the group uses {}", backend));
    scenarios.at(name)(world);
    if (name != "die") world.barrier();
    std::cout << fmt::format("rank {}: right\n", rank) << std::flush;
    if (name == "die" && backend == "mpi") _exit(0);  // MPI's launcher may still wait for the dead one
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("rank {}: {}\n", rank, error.what()) << std::flush;
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || !scenarios.contains(argv[1])) {
    std::cerr << "usage: mpi_ranks SCENARIO [BACKEND]\n";
    return 2;
  }
  return run(argv[1], argc > 2 ? argv[2] : "mpi");
}
