// loopback_bench.cpp: what bench/validate_sim gives to `tutti sim`, and what it compares with: messages, kernels, collectives.
// SPDX-License-Identifier: Apache-2.0
//
//   loopback_bench --ranks 2 --seconds 0.2 --pattern ping_pong --sizes 8 --pattern all_reduce --sizes 8,1048576
//
// Patterns: ping_pong (half of the round trip), permute (all send to the right and receive from the left at once: the plan with
// one message), pieces (the same with one piece of 64 KiB of the array after the other), token (one message goes around while the
// others wait), reduce and copy (each rank for itself, no messages), alone (a call of a rank that has nobody to talk to), and
// collectives that no rank can leave before all have entered: all_reduce, all_gather, reduce_scatter, barrier. `bytes` is the
// whole array. The same memory every time; call after call. One JSON object per line.
#include <fmt/format.h>
#include <sched.h>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernel/kernel.hpp"
#include "local_ranks.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Array = std::vector<float>;

struct Series {
  std::string pattern;
  std::vector<std::int64_t> sizes{8};
};
struct Options {
  int ranks = 2;
  double seconds = 0.2;  // per size
  std::vector<Series> series;
};

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(std::stoll(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return sizes;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--ranks") options.ranks = std::stoi(value);
    if (name == "--seconds") options.seconds = std::stod(value);
    if (name == "--pattern") options.series.push_back({.pattern = value});
    if (name == "--sizes" && !options.series.empty()) options.series.back().sizes = parse_sizes(value);
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

tutti::Pairs to_the_right(const tutti::Group& world) {
  tutti::Pairs pairs;
  for (int rank = 0; rank < world.size(); ++rank) pairs.emplace_back(rank, (rank + 1) % world.size());
  return pairs;
}

// Of 64 KiB, the longest that need not wait for their receiver.
void pieces(tutti::Group& world, Array& data, Array& other, int calls) {
  const tutti::Pairs pairs = to_the_right(world);
  const std::size_t piece = std::min<std::size_t>(data.size(), 16384), parts = data.size() / piece;
  for (int i = 0; i < calls; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) % parts * piece;
    world.permute(std::span(data).subspan(at, piece), std::span(other).subspan(at, piece), pairs);
  }
}

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
  if (pattern == "permute")
    return [&world, data, other, pairs = to_the_right(world)](int calls) {
      for (int i = 0; i < calls; ++i) world.permute(*data, *other, pairs);
    };
  if (pattern == "pieces") return [&world, data, other](int calls) { pieces(world, *data, *other, calls); };
  if (pattern == "alone")
    return [self = std::make_shared<tutti::Group>(world.split(world.rank())), data](int calls) {
      for (int i = 0; i < calls; ++i) self->all_reduce(*data);
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

// The fastest of a few, as the slowest rank sees it.
double rough_microseconds(tutti::Group& world, const std::function<void(int)>& work) {
  std::vector<double> times;
  for (int i = 0; i < 4; ++i) times.push_back(microseconds_of(world, work, 2));
  world.all_reduce(times, {.op = tutti::Op::max});
  return *std::min_element(times.begin(), times.end());
}

void measure(tutti::Group& world, const std::string& pattern, double seconds, std::int64_t bytes) {
  const auto work = work_of(pattern, world, bytes);
  const double pairs = seconds * 1e6 / rough_microseconds(world, work) / 2;  // ping_pong goes there and back
  const int repeats = static_cast<int>(std::clamp(pairs, 3.0, 15.0));
  const int calls = 2 * static_cast<int>(std::clamp(pairs / repeats, 1.0, 2500.0));
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(microseconds_of(world, work, calls));
  world.all_reduce(times, {.op = tutti::Op::max});  // the slowest rank's time counts
  std::sort(times.begin(), times.end());
  if (world.rank() != 0) return;
  fmt::print("{{\"pattern\": \"{}\", \"bytes\": {}, \"ranks\": {}, \"calls\": {}, \"us\": {:.3f}}}\n", pattern, bytes,
             world.size(), calls, times[times.size() / 2]);
  std::fflush(stdout);
}

// Each on a core of its own if there are enough, as far apart as possible: adjacent processors may be hardware threads of one core.
void stay_on_a_core(int ranks) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const char* const rank = getenv("RANK");
  if (rank == nullptr || cores < ranks) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(std::stoi(rank) * (cores / ranks)), &one);
  sched_setaffinity(0, sizeof one, &one);  // where it is not allowed, it stays where it is
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!examples::under_a_launcher()) return examples::start_ranks(options.ranks, argv);
  stay_on_a_core(options.ranks);
  tutti::Group world = tutti::init({.init_method = examples::meeting_point()});
  for (const Series& series : options.series) {
    for (const std::int64_t bytes : series.sizes) measure(world, series.pattern, options.seconds, bytes);
  }
}
