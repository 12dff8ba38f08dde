// loopback_bench.cpp: what bench/validate_sim gives to `tutti sim`, and what it compares with: messages, kernels, collectives.
// SPDX-License-Identifier: Apache-2.0
//
//   loopback_bench --ranks 2 --pattern ping_pong --sizes 8,1048576 --seconds 0.2
//
// Patterns: ping_pong (half of the round trip), shift (all send to the right and receive from the left at once), token (one
// message goes around while the others wait), reduce and copy (each rank for itself, no messages), and collectives that no rank
// can leave before all have entered: all_reduce, all_gather, reduce_scatter, barrier. `bytes` is the whole array. The same memory every time. One JSON object per line.
#include <fmt/format.h>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernel/kernel.hpp"
#include "local_ranks.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Array = std::vector<float>;

struct Options {
  int ranks = 2;
  double seconds = 0.2;  // per size
  std::string pattern = "all_reduce";
  std::vector<std::int64_t> sizes{8};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--ranks") options.ranks = std::stoi(value);
    if (name == "--seconds") options.seconds = std::stod(value);
    if (name == "--pattern") options.pattern = value;
    if (name == "--sizes") {
      options.sizes.clear();
      for (std::size_t begin = 0; begin < value.size();) {
        const std::size_t end = std::min(value.find(',', begin), value.size());
        options.sizes.push_back(std::stoll(value.substr(begin, end - begin)));
        begin = end + 1;
      }
    }
  }
  return options;
}

// Half of the round trip is one message.
void ping_pong(tutti::Group& world, Array& data, int calls) {
  for (int i = 0; i < calls; ++i) {
    const bool first = i % 2 == 0;
    if (world.rank() > 1) continue;
    if ((world.rank() == 0) == first) {
      world.send(data, 1 - world.rank());
    } else {
      world.recv(data, 1 - world.rank());
    }
  }
}

int right_of(const tutti::Group& world) { return (world.rank() + 1) % world.size(); }
int left_of(const tutti::Group& world) { return (world.rank() + world.size() - 1) % world.size(); }

void token(tutti::Group& world, Array& data, int calls) {
  for (int i = 0; i < calls; ++i) {
    const int holder = i % world.size();
    if (holder == world.rank()) world.send(data, right_of(world));
    if (holder == left_of(world)) world.recv(data, holder);
  }
}

// One call of the pattern on `bytes` bytes, many times.
std::function<void(int)> work_of(const std::string& pattern, tutti::Group& world, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / 4));
  const auto size = static_cast<std::size_t>(world.size());
  const std::size_t block = std::max<std::size_t>(1, count / size);
  auto data = std::make_shared<Array>(count, 1.0f);
  auto other = std::make_shared<Array>(count, 0.0f);
  if (pattern == "ping_pong") return [&world, data](int calls) { ping_pong(world, *data, calls); };
  if (pattern == "token") return [&world, data](int calls) { token(world, *data, calls); };
  if (pattern == "shift")
    return [&world, data, other](int calls) {
      for (int i = 0; i < calls; ++i) world.sendrecv(*data, right_of(world), *other, left_of(world));
    };
  if (pattern == "reduce")
    return [data, other](int calls) {
      for (int i = 0; i < calls; ++i)
        tutti::kernel::reduce(tutti::Op::Kind::sum, tutti::DType::float32, other->data(), other->data(), data->data(),
                              static_cast<std::int64_t>(data->size()));
    };
  if (pattern == "copy")
    return [data, other](int calls) {
      for (int i = 0; i < calls; ++i) std::memmove(other->data(), data->data(), data->size() * 4);
    };
  if (pattern == "barrier")
    return [&world](int calls) {
      for (int i = 0; i < calls; ++i) world.barrier();
    };
  auto part = std::make_shared<Array>(block, 1.0f), whole = std::make_shared<Array>(block * size, 1.0f);
  if (pattern == "all_gather")
    return [&world, part, whole](int calls) {
      for (int i = 0; i < calls; ++i) world.all_gather(*part, *whole);
    };
  if (pattern == "reduce_scatter")
    return [&world, part, whole](int calls) {
      for (int i = 0; i < calls; ++i) world.reduce_scatter(*whole, *part);
    };
  return [&world, data](int calls) {
    for (int i = 0; i < calls; ++i) {
      (*data)[0] = 1.0f;
      world.all_reduce(*data);
    }
  };
}

double microseconds_of(tutti::Group& world, const std::function<void(int)>& work, int calls) {
  world.barrier();
  const auto begin = Clock::now();
  work(calls);
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
}

void measure(tutti::Group& world, const Options& options, std::int64_t bytes) {
  constexpr int repeats = 15;
  const auto work = work_of(options.pattern, world, bytes);
  (void)microseconds_of(world, work, 4);
  std::vector<double> once{microseconds_of(world, work, 4)};
  world.all_reduce(once, {.op = tutti::Op::max});
  const int calls = 2 * std::clamp(static_cast<int>(options.seconds * 1e6 / repeats / once[0] / 2), 1, 2500);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(microseconds_of(world, work, calls));
  world.all_reduce(times, {.op = tutti::Op::max});  // the slowest rank's time counts
  std::sort(times.begin(), times.end());
  if (world.rank() != 0) return;
  fmt::print("{{\"pattern\": \"{}\", \"bytes\": {}, \"ranks\": {}, \"us\": {:.3f}, \"us_best\": {:.3f}}}\n",
             options.pattern, bytes, world.size(), times[repeats / 2], times.front());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!examples::under_a_launcher()) return examples::start_ranks(options.ranks, argv);
  tutti::Group world = tutti::init({.init_method = examples::meeting_point()});
  for (const std::int64_t bytes : options.sizes) measure(world, options, bytes);
}
