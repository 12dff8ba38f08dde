// limits.cpp: what this machine allows, measured by threads that share all arrays.
// SPDX-License-Identifier: Apache-2.0
#include "bench/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <new>

#include "bench/statistics.hpp"
#include "bench/thread_pool.hpp"

namespace tutti::bench {

namespace {

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

constexpr int line_floats = 16;
constexpr std::int64_t bandwidth_count = 16 << 20;  // elements: 64 MiB

class Array {
 public:
  explicit Array(std::int64_t count) : count_(count) {
    const auto bytes = static_cast<std::size_t>((count + line_floats) / line_floats * line_floats) * sizeof(float);
    data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (!data_) throw std::bad_alloc();
    std::fill_n(data_.get(), count, 0.0f);
  }
  [[nodiscard]] float* data() const { return data_.get(); }
  void fill(float value) { std::fill_n(data_.get(), count_, value); }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::int64_t count_;
  std::unique_ptr<float, Free> data_{};
};

// Blocks start at a cache line, for the sake of aligned loads; what is read and written stays as much.
std::int64_t line_start(std::int64_t element) { return element / line_floats * line_floats; }

// The arrays of the least work, and the streams over them.
struct Bench {
  std::vector<Array> inputs{}, outputs{};
  std::vector<Stream> streams{};
  bool is_written_anew = true;  // the inputs, before each round

  explicit Bench(const LeastWork& work) {
    for (int i = 0; i < work.plane.input_arrays; ++i) inputs.emplace_back(work.plane.input_count);
    for (int i = 0; i < work.plane.output_arrays; ++i) outputs.emplace_back(work.plane.output_count);
    for (const Portion& portion : work.portions) {
      Stream stream{.count = portion.count};
      for (const int i : portion.inputs) {
        stream.inputs.push_back(inputs[static_cast<std::size_t>(i)].data() + line_start(portion.input_begin));
      }
      for (const int i : portion.outputs) {
        const bool in_place = outputs.empty();
        stream.outputs.push_back((in_place ? inputs : outputs)[static_cast<std::size_t>(i)].data() +
                                 line_start(portion.output_begin));
      }
      streams.push_back(std::move(stream));
    }
  }
};

// Whole cache lines for each.
Stretch part_of(std::int64_t count, int thread, int threads) {
  const std::int64_t lines = (count + line_floats - 1) / line_floats;
  return {std::min(count, lines * thread / threads * line_floats),
          std::min(count, lines * (thread + 1) / threads * line_floats)};
}

// Median over rounds of the slowest thread's time.
double us_of_streams(Bench& bench, int threads, Stores stores) {
  std::vector<std::vector<double>> times(static_cast<std::size_t>(threads));
  SpinBarrier barrier(threads);
  constexpr double us_max = 20'000;
  constexpr std::size_t rounds_min = 4, rounds_max = 300;
  std::atomic<bool> goes_on{true};
  run_on_cores(threads, [&](int thread) {
    double us_total = 0;
    for (std::size_t round = 0; goes_on.load(std::memory_order_relaxed); ++round) {
      for (std::size_t i = bench.is_written_anew ? static_cast<std::size_t>(thread) : bench.inputs.size();
           i < bench.inputs.size(); i += static_cast<std::size_t>(threads)) {
        bench.inputs[i].fill(static_cast<float>(round % 7));
      }
      barrier.arrive();
      const auto begin = Clock::now();
      for (const Stream& stream : bench.streams) {
        run(stream, part_of(stream.count, thread, threads), stores);
      }
      times[static_cast<std::size_t>(thread)].push_back(us_since(begin));
      us_total += times[static_cast<std::size_t>(thread)].back();
      if (thread == 0 && round + 1 >= rounds_min && (us_total > us_max || round + 1 >= rounds_max))
        goes_on.store(false, std::memory_order_relaxed);
      barrier.arrive();
    }
  });
  std::vector<double> slowest = times[0];
  for (const auto& one : times) {
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], one[i]);
  }
  slowest.erase(slowest.begin());  // pages and caches are new
  return median(slowest);
}

double bandwidth(int threads, int inputs, int outputs, Stores stores) {
  Portion portion{.count = bandwidth_count};
  for (int i = 0; i < inputs; ++i) portion.inputs.push_back(i);
  for (int i = 0; i < outputs; ++i) portion.outputs.push_back(i);
  Bench bench({.plane = {inputs, outputs, bandwidth_count, bandwidth_count}, .portions = {std::move(portion)}});
  bench.is_written_anew = false;
  const double bytes = static_cast<double>(bandwidth_count) * 4 * (inputs + outputs);
  return bytes / us_of_streams(bench, threads, stores) / 1e3;
}

}  // namespace

double measure_line_us() {
  if (allowed_cores().size() < 2) return 0;
  struct alignas(64) Line {
    std::atomic<unsigned> turn{0};
  };
  std::array<Line, 2> lines;  // one in each direction
  constexpr unsigned trips = 2000;
  constexpr int samples_wanted = 15;
  std::vector<double> samples;
  run_on_cores(2, [&](int thread) {
    const auto me = static_cast<std::size_t>(thread);
    unsigned number = 0;
    const auto wait = [&] {
      for (int spins = 0; lines[1 - me].turn.load(std::memory_order_acquire) != number; ++spins) {
        if (spins > 100'000) sched_yield();
      }
    };
    for (int sample = 0; sample < samples_wanted; ++sample) {
      const auto begin = Clock::now();
      for (unsigned i = 0; i < trips; ++i) {
        ++number;
        if (thread == 0) lines[me].turn.store(number, std::memory_order_release);
        wait();
        if (thread == 1) lines[me].turn.store(number, std::memory_order_release);
      }
      if (thread == 0) samples.push_back(us_since(begin) / (2.0 * trips));
    }
  });
  return *std::min_element(samples.begin(), samples.end());
}

Limits::Limits(int ranks)
    : ranks_(ranks),
      threads_(std::min(ranks, static_cast<int>(allowed_cores().size()))),
      line_us_(measure_line_us()),
      memory_{.read = bandwidth(threads_, 1, 0, Stores::cached),
              .copy = bandwidth(threads_, 1, 1, Stores::cached),
              .copy_non_temporal = bandwidth(threads_, 1, 1, Stores::non_temporal),
              .add = bandwidth(threads_, 2, 1, Stores::cached),
              .add_non_temporal = bandwidth(threads_, 2, 1, Stores::non_temporal)} {}

std::string Limits::describe() const {
  return fmt::format(
      "limits, {} thread{}: a cache line from core to core {:.3f} us; memory in GB/s: read {:.1f}, copy {:.1f} "
      "(non-temporal {:.1f}), add {:.1f} (non-temporal {:.1f})",
      threads_, threads_ == 1 ? "" : "s", line_us_, memory_.read, memory_.copy, memory_.copy_non_temporal, memory_.add,
      memory_.add_non_temporal);
}

double Limits::us_of(const BenchCase& bench_case) const {
  const LeastWork work = least_work(bench_case, ranks_);
  if (work.portions.empty() || work.portions.front().count == 0) return line_us_;
  Bench bench(work);
  const double us =
      std::min(us_of_streams(bench, threads_, Stores::cached), us_of_streams(bench, threads_, Stores::non_temporal));
  return std::max(line_us_, us);
}

}  // namespace tutti::bench
