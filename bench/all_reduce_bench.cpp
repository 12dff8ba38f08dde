// all_reduce_bench.cpp: all_reduce of float32 sums over TCP, one JSON line per size; bench/run compares it with peers.
// SPDX-License-Identifier: Apache-2.0
//
//   all_reduce_bench --ranks 2 --sizes 8,4096,67108864 --seconds 0.5
//
// The limit: over loopback each byte of the array crosses a socket once per direction and rank (2 ranks: bytes ÷ what a stream
// of iperf3 carries), and a small call takes one exchange (a round trip of a socket, half of it overlapped).
// Buffers change every iteration: calls walk through a pool larger than the caches, and one element is written before each.
#include <fmt/format.h>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "local_ranks.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int ranks = 2;
  double seconds = 0.5;  // per size
  std::vector<std::int64_t> sizes{8, 512, 4096, 32768, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--ranks") options.ranks = std::stoi(value);
    if (name == "--seconds") options.seconds = std::stod(value);
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

/// Arrays that do not fit the caches together.
class Pool {
 public:
  explicit Pool(std::int64_t bytes) {
    constexpr std::int64_t pool_bytes = 128 << 20;
    const std::int64_t count = std::clamp<std::int64_t>(pool_bytes / std::max<std::int64_t>(bytes, 1), 2, 4096);
    for (std::int64_t i = 0; i < count; ++i) buffers_.emplace_back(static_cast<std::size_t>(bytes / 4), 0.0f);
  }
  std::vector<float>& next() {
    std::vector<float>& buffer = buffers_[index_++ % buffers_.size()];
    buffer[index_ % buffer.size()] = static_cast<float>(index_ % 7);
    return buffer;
  }

 private:
  std::vector<std::vector<float>> buffers_;
  std::size_t index_ = 0;
};

double microseconds_of(tutti::Group& world, Pool& pool, int calls) {
  world.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) world.all_reduce(pool.next());
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
}

void measure(tutti::Group& world, std::int64_t bytes, double seconds) {
  constexpr int repeats = 15;
  Pool pool(bytes);
  (void)microseconds_of(world, pool, 2);
  std::vector<double> once{microseconds_of(world, pool, 3)};
  world.all_reduce(once, {.op = tutti::Op::max});
  const int calls = std::clamp(static_cast<int>(seconds * 1e6 / repeats / once[0]), 1, 5000);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(microseconds_of(world, pool, calls));
  world.all_reduce(times, {.op = tutti::Op::max});  // the slowest rank's time counts
  std::sort(times.begin(), times.end());
  if (world.rank() != 0) return;
  const double median = times[repeats / 2];
  fmt::print(
      "{{\"verb\": \"all_reduce\", \"dtype\": \"float32\", \"bytes\": {}, \"ranks\": {}, \"library\": \"tutti-tcp\", "
      "\"us_median\": {:.2f}, \"us_p99\": {:.2f}, \"algbw_GBps\": {:.3f}}}\n",
      bytes, world.size(), median, times.back(), static_cast<double>(bytes) / median / 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!examples::under_a_launcher()) return examples::start_ranks(options.ranks, argv);
  tutti::Group world = tutti::init({.init_method = examples::meeting_point()});
  for (const std::int64_t bytes : options.sizes) measure(world, bytes, options.seconds);
}
