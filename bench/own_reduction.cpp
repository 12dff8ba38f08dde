// own_reduction.cpp: a reduction of one's own over structs of 16 bytes against the built-in sum over as many bytes of doubles.
// SPDX-License-Identifier: Apache-2.0
//
//   tuttirun -n 2 own_reduction [BYTES [ROUNDS]]                       shared memory; 4 MiB, 200 rounds
//   TUTTI_BACKEND=native tuttirun -n 2 own_reduction [BYTES [ROUNDS]]  TCP
//
// Both are done in turns. Microseconds are medians of the slowest rank's; the ratio is that of the sum's speed: 1 is as fast.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include <tutti/tutti.hpp>

namespace {

using Clock = std::chrono::steady_clock;

struct Best {  // the nearest point and whose it is
  double distance;
  std::int64_t index;
};
struct Point {
  double x, y;
};

double seconds_of(const tutti::Group& world, const std::function<void()>& call) {
  world.barrier();
  const auto begin = Clock::now();
  call();
  return world.all_reduce(std::chrono::duration<double>(Clock::now() - begin).count(), {.op = tutti::Op::max});
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  const tutti::Group world = tutti::init();
  const std::size_t bytes = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 4 << 20;
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 200;
  std::vector<double> numbers(bytes / sizeof(double), 1.0);
  std::vector<Point> points(bytes / sizeof(Point), {1, 2});
  std::vector<Best> bests(bytes / sizeof(Best), {1.5, world.rank()});
  const auto add = tutti::op([](Point a, Point b) { return Point{a.x + b.x, a.y + b.y}; });
  const auto nearer = tutti::op([](const Best& a, const Best& b) { return b.distance < a.distance ? b : a; });
  // The same by value: GCC 12 copies both to the stack before it chooses one.
  const auto nearer_by_value = tutti::op([](Best a, Best b) { return b.distance < a.distance ? b : a; });

  std::vector<double> sum, own, choice, by_value;
  for (int i = 0; i < rounds; ++i) {
    std::fill(numbers.begin(), numbers.end(), 1.0);  // each array right before its call: all are in the caches alike
    sum.push_back(seconds_of(world, [&] { world.all_reduce(numbers); }));
    std::fill(points.begin(), points.end(), Point{1, 2});
    own.push_back(seconds_of(world, [&] { world.all_reduce(points, {.op = add}); }));
    std::fill(bests.begin(), bests.end(), Best{1.5 + world.rank(), i});
    choice.push_back(seconds_of(world, [&] { world.all_reduce(bests, {.op = nearer}); }));
    std::fill(bests.begin(), bests.end(), Best{1.5 + world.rank(), i});
    by_value.push_back(seconds_of(world, [&] { world.all_reduce(bests, {.op = nearer_by_value}); }));
  }
  if (world.rank() != 0) return 0;
  const double base = median(sum);
  fmt::print("{} ranks, {} bytes, medians of {}\n", world.size(), bytes, rounds);
  fmt::print("  sum of doubles          {:8.1f} µs\n", base * 1e6);
  for (const auto& [name, times] :
       {std::pair{"own sum of two doubles", &own}, std::pair{"own choice of 16 bytes", &choice},
        std::pair{"… operands by value", &by_value}})
    fmt::print("  {:<22}  {:8.1f} µs   {:.2f} of the speed of sum\n", name, median(*times) * 1e6,
               base / median(*times));
}
