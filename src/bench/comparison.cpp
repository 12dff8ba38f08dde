// comparison.cpp: the libraries side by side, in turns.
// SPDX-License-Identifier: Apache-2.0
#include "bench/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <tutti/error.hpp>

#include "bench/statistics.hpp"

namespace tutti::bench {

namespace {

using namespace std::chrono_literals;
constexpr Duration answer_time_max = 60s;  // a stretch of a turn, on a machine that does many other things, too

constexpr double turn_us = 12'000;  // with 7 repeats a case takes about 100 ms for each library
constexpr double batch_us = 60;     // long beside the barrier that goes first, short beside a slice of the scheduler
constexpr std::int64_t small_bytes = 64 << 10;
constexpr int calls_max = 256, batches_max = 200, stretch_batches = 20;
constexpr Duration turn_time_max = 200ms;  // for a turn that becomes slow on the way

}  // namespace

struct Comparison::Samples {
  std::vector<double> turn_medians{}, batches{};
  std::int64_t wrong = 0;
  std::string trouble{};
};

// The first word that begins with a digit: "Open MPI v5.0.11", "gloo of torch 2.11.0+cpu".
std::string version_in(std::string_view description) {
  const std::size_t begin = description.find_first_of("0123456789");
  if (begin == std::string_view::npos) return "";
  return std::string(description.substr(begin, description.find_first_not_of("0123456789.", begin) - begin));
}

const Measurement* best_peer(const Row& row) {
  const Measurement* best = nullptr;
  for (const Measurement& one : row.measurements) {
    if (one.is_peer && one.trouble.empty() && (best == nullptr || one.us_median < best->us_median)) best = &one;
  }
  return best;
}

Turn turn_of(const BenchCase& bench_case, double us_per_call) {
  const double us = std::max(us_per_call, 1e-3);
  Turn turn{.bench_case = bench_case};
  turn.calls = static_cast<int>(std::clamp(std::ceil(batch_us / us), 1.0, static_cast<double>(calls_max)));
  turn.batches = static_cast<int>(std::clamp(turn_us / (us * turn.calls), 1.0, static_cast<double>(batches_max)));
  return turn;
}

Turn first_turn_of(const BenchCase& bench_case) {
  return bench_case.bytes() <= small_bytes ? Turn{.bench_case = bench_case, .calls = 4, .batches = 3}
                                           : Turn{.bench_case = bench_case};
}

void Comparison::add_tutti(JobStart start) {
  auto job = std::make_unique<LibraryJob>(coordinator_, start);
  contenders_.push_back({.start = std::move(start), .job = std::move(job)});
}

void Comparison::add_peer(JobStart start) {
  add_tutti(std::move(start));
  contenders_.back().is_peer = true;
}

std::vector<std::string> Comparison::descriptions() const {
  std::vector<std::string> texts;
  for (const Contender& one : contenders_) {
    if (one.job) texts.push_back(fmt::format("{}: {}", one.start.library, one.job->description()));
  }
  return texts;
}

void Comparison::revive(Contender& contender, Samples& samples) {
  samples.trouble = contender.retired;
  if (contender.job != nullptr || !contender.retired.empty()) return;
  try {
    contender.job = std::make_unique<LibraryJob>(coordinator_, contender.start);
  } catch (const Error& error) {
    contender.retired = samples.trouble = error.what();
  }
}

Answer Comparison::run_turn(LibraryJob& job, const BenchCase& bench_case) {
  const auto run = [&](const Turn& turn) { return job.run(turn, steady_clock().now() + answer_time_max); };
  const Turn probe = first_turn_of(bench_case);
  Answer answer = run(probe);
  if (!answer.trouble.empty()) return answer;
  const Turn plan = turn_of(bench_case, median(answer.us_per_call));
  if (plan.calls <= probe.calls && plan.batches <= probe.batches) return answer;
  answer.us_per_call.clear();
  const TimePoint end = steady_clock().now() + turn_time_max;
  for (int left = plan.batches; left > 0 && answer.trouble.empty(); left -= stretch_batches) {
    if (!answer.us_per_call.empty() && steady_clock().now() > end) break;
    const Answer more =
        run({.bench_case = bench_case, .calls = plan.calls, .batches = std::min(left, stretch_batches)});
    answer.trouble = more.trouble;
    answer.wrong += more.wrong;
    answer.us_per_call.insert(answer.us_per_call.end(), more.us_per_call.begin(), more.us_per_call.end());
  }
  return answer;
}

void Comparison::take_turn(Contender& contender, Samples& samples, const BenchCase& bench_case) {
  if (!samples.trouble.empty()) return;
  try {
    const Answer answer = run_turn(*contender.job, bench_case);
    samples.trouble = answer.trouble;
    if (!answer.trouble.empty()) return;
    samples.wrong += answer.wrong;
    samples.turn_medians.push_back(median(answer.us_per_call));
    samples.batches.insert(samples.batches.end(), answer.us_per_call.begin(), answer.us_per_call.end());
  } catch (const Timeout& timeout) {
    contender.retired = samples.trouble = timeout.what();
    contender.job.reset();
  } catch (const Error& error) {
    samples.trouble = error.what();
    contender.job.reset();
  }
}

std::vector<Measurement> Comparison::measure(const BenchCase& bench_case, const std::function<void()>& after_round) {
  std::vector<Samples> samples(contenders_.size());
  for (std::size_t i = 0; i < contenders_.size(); ++i) revive(contenders_[i], samples[i]);
  for (int repeat = 0; repeat < repeats_; ++repeat) {
    for (std::size_t i = 0; i < contenders_.size(); ++i) take_turn(contenders_[i], samples[i], bench_case);
    after_round();
  }
  std::vector<Measurement> measurements;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    const auto& job = contenders_[i].job;
    Measurement one{.library = contenders_[i].start.library,
                    .version = job ? version_in(job->description()) : "",
                    .is_peer = contenders_[i].is_peer,
                    .wrong = samples[i].wrong,
                    .trouble = samples[i].trouble};
    if (one.trouble.empty()) {
      one.us_median = median(samples[i].turn_medians);
      one.us_p99 = percentile(samples[i].batches, 0.99);
    } else if (!one.is_peer) {
      throw Error(fmt::format("{}: {}", one.library, one.trouble));
    }
    measurements.push_back(std::move(one));
  }
  return measurements;
}

}  // namespace tutti::bench
