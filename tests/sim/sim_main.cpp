// sim_main.cpp: sim_seeds, the program that runs seeds of the simulated cluster and checks what its ranks saw.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "check.hpp"
#include "run.hpp"
#include "summary.hpp"

namespace {

using namespace tutti;
using namespace tutti::sim;

constexpr const char* usage =
    "sim_seeds [--seeds N] [--first K] [--seed S] [--threads N] [--verbose] [--broken NAME]\n"
    "  Runs N seeds (1000) from K on (1), or the seed S alone, and checks safety and liveness of each. Every 16th "
    "seed, and a\n"
    "  single one, runs twice: both runs must be the same. --verbose tells what happened in each seed. --broken breaks "
    "the\n"
    "  transport on purpose (flip, drop, late, accuse, deaf), to see that it is noticed.\n";

constexpr std::uint64_t replay_every = 16;
constexpr std::size_t violations_told = 3;

struct Options {
  std::uint64_t seeds = 1000, first = 1;
  unsigned threads = 0;
  bool verbose = false;
  Breakage breakage = Breakage::none;
};

std::string story(const Scenario& scenario, const History& history) {
  std::string text = describe(scenario);
  const auto ms = [](Duration d) { return static_cast<double>(d.count()) / 1e6; };
  for (const CreationRecord& c : history.creations) {
    text += fmt::format("  {:10.3f} ms rank {:2} made group {}{}\n", ms(c.ended), c.rank, c.group,
                        !c.ended_at_all ? ": never"
                        : c.failed      ? ": failed: " + c.cause.text
                                        : "");
  }
  for (const Record& r : history.calls) {
    text += fmt::format("  {:10.3f} … {:10.3f} ms rank {:2} group {} call {:2} {:8} {}\n", ms(r.started), ms(r.ended),
                        r.rank, r.group, r.call, name_of(r.outcome), r.text);
  }
  return text +
         fmt::format("  {:.3f} ms, {} steps, trace {:016x}\n", ms(history.elapsed), history.steps, history.trace);
}

// Takes the next seed until there are none.
class Worker {
 public:
  Worker(const Options& options, std::atomic<std::uint64_t>& next, Summary& summary, std::mutex& lock)
      : options_(options), next_(next), summary_(summary), lock_(lock) {}

  void work() {
    for (std::uint64_t i = next_++; i < options_.seeds; i = next_++) run_seed(options_.first + i);
  }

 private:
  void run_seed(std::uint64_t seed) {
    const Scenario scenario = draw_scenario(seed);
    const History history = run(scenario, options_.breakage);
    std::vector<std::string> violations = check(scenario, history);
    if (options_.seeds == 1 || seed % replay_every == 0) {
      const History again = run(scenario, options_.breakage);
      if (again.trace != history.trace || again.steps != history.steps)
        violations.push_back("a second run went another way");
    }
    const std::lock_guard guard(lock_);
    summary_.add(scenario, history, violations.empty());
    if (options_.verbose) fmt::print("{}", story(scenario, history));
    if (!violations.empty()) {
      fmt::print("seed {} ({}) violates:\n", seed, kind_of(scenario));
      for (std::size_t i = 0; i < std::min(violations.size(), violations_told); ++i)
        fmt::print("  {}\n", violations[i]);
      if (violations.size() > violations_told) fmt::print("  … and {} more\n", violations.size() - violations_told);
      fmt::print("  replay: ./dev sim {}\n", seed);
    }
    if (const std::int64_t done = summary_.seeds(); done % 100 == 0) fmt::print("{} seeds\n", done);
    std::fflush(stdout);
  }

  const Options& options_;
  std::atomic<std::uint64_t>& next_;
  Summary& summary_;
  std::mutex& lock_;
};

[[noreturn]] void explain_and_exit() {
  std::fputs(usage, stderr);
  std::exit(2);
}

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  const char* const end = text + std::strlen(text);
  if (const auto [at, error] = std::from_chars(text, end, value); error != std::errc() || at != end) explain_and_exit();
  return value;
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&] { return i + 1 < count ? words[++i] : (explain_and_exit(), nullptr); };
    if (word == "--verbose") {
      options.verbose = true;
    } else if (word == "--seeds") {
      options.seeds = number(value());
    } else if (word == "--first") {
      options.first = number(value());
    } else if (word == "--threads") {
      options.threads = static_cast<unsigned>(number(value()));
    } else if (word == "--seed") {
      options.first = number(value());
      options.seeds = 1;
    } else if (word == "--broken") {
      const auto breakage = breakage_from_name(value());
      if (!breakage) explain_and_exit();
      options.breakage = *breakage;
    } else {
      explain_and_exit();
    }
  }
  if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next{0};
  Summary summary;
  std::mutex lock;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < options.threads; ++i) {
    threads.emplace_back([&] { Worker(options, next, summary, lock).work(); });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(
      "\n{}\n{} seeds, {} calls, {:.0f} s of virtual time in {:.1f} s: {}\n", summary.table(), summary.seeds(),
      summary.calls(), summary.virtual_seconds(), seconds,
      summary.failed() == 0 ? "safety and liveness hold" : fmt::format("{} seeds VIOLATE them", summary.failed()));
  return summary.failed() == 0 ? 0 : 1;
}
