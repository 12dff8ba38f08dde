// many_works.cpp: what a call costs when many are under way: 100, 10 000 and 100 000 works are started, then waited for.
// SPDX-License-Identifier: Apache-2.0
//
//   tuttirun -n 3 many_works                       shared memory
//   TUTTI_BACKEND=native tuttirun -n 3 many_works  TCP
//
// Microseconds per work, the best of three runs, as rank 0 sees them: of the clock, and of its processor, which other programs
// on the machine disturb less. The last column should say the same as the first.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include <tutti/tutti.hpp>

namespace {

using Clock = std::chrono::steady_clock;

struct Cost {
  double clock = 1e9, processor = 1e9;  // microseconds per work
};

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

Cost cost_per_work(tutti::Group& world, std::size_t count, const std::function<void()>& run) {
  Cost best;
  for (int round = 0; round < 3; ++round) {
    world.barrier();
    const double used = processor_seconds();
    const auto begin = Clock::now();
    run();
    const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
    best.clock = std::min(best.clock, taken.count() / static_cast<double>(count));
    best.processor = std::min(best.processor, 1e6 * (processor_seconds() - used) / static_cast<double>(count));
  }
  return best;
}

Cost of_all_reduce(tutti::Group& world, std::size_t count) {
  std::vector<float> data(count, 1.0f);
  return cost_per_work(world, count, [&] {
    std::vector<tutti::Work> works;
    works.reserve(count);
    for (float& each : data) works.push_back(world.start(tutti::AllReduce{.data = std::span(&each, 1)}));
    for (tutti::Work& work : works) work.wait();
  });
}

Cost of_messages(tutti::Group& world, std::size_t count) {
  const int to = (world.rank() + 1) % world.size(), from = (world.rank() + world.size() - 1) % world.size();
  std::vector<float> sent(count, 1.0f), got(count);
  return cost_per_work(world, count, [&] {
    std::vector<tutti::Work> works;
    works.reserve(2 * count);
    for (float& each : got) works.push_back(world.start(tutti::Receive{.data = std::span(&each, 1), .from = from}));
    for (float& each : sent) works.push_back(world.start(tutti::Send{.data = std::span(&each, 1), .to = to}));
    for (tutti::Work& work : works) work.wait();
  });
}

}  // namespace

int main() {
  tutti::Group world = tutti::init();
  constexpr std::size_t counts[] = {100, 10'000, 100'000};
  for (const auto& [name, measure] :
       {std::pair{"all_reduce", &of_all_reduce}, std::pair{"send + recv", &of_messages}}) {
    std::string line = fmt::format("{:12} {:8}", name, world.backend());
    for (const std::size_t count : counts) {
      const Cost cost = measure(world, count);
      line += fmt::format("  {:7}: {:6.2f} ({:5.2f}) us", count, cost.clock, cost.processor);
    }
    if (world.rank() == 0) fmt::print("{}\n", line);
  }
}
