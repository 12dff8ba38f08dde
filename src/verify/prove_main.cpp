// prove_main.cpp: prove_plans, the program that proves all plans of the grid, or shows that a broken one is noticed.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "plan/catalog.hpp"
#include "verify/prove.hpp"
#include "verify/prove_cases.hpp"

namespace {

using namespace tutti;

constexpr const char* usage =
    "prove_plans [--quick | --sample N] [--sizes MAX] [--threads N] [--verb NAME] [--broken]\n"
    "  Proves the plans of all algorithms for sizes 1 to MAX (33). --sample N visits every N-th case of the grid, "
    "--quick is\n"
    "  --sample 97. --broken proves a plan that lacks one step, and fails as it should.\n";

struct Options {
  Grid grid;
  int threads = 2;
  std::string verb;
  bool broken = false;
};

struct Tally {
  std::int64_t cases = 0, plans = 0, steps = 0, messages = 0;
};

std::string describe(const Spec& s) {
  return fmt::format("{} by {}: size {}, root {}, count {}, counts [{}], segment {}, finish {}, in_place of rank 0 {}",
                     name_of(s.verb), name_of(s.algorithm), s.size, s.root, s.count, fmt::join(s.counts, " "),
                     s.segment, s.finish, s.in_place);
}

// One thread's share: takes the next (row, size) until there are none, the large ones first.
class Worker {
 public:
  Worker(const Options& options, std::atomic<std::size_t>& next, std::vector<Tally>& tallies, std::mutex& lock)
      : options_(options), next_(next), tallies_(tallies), lock_(lock) {}

  /// The first failure, or an empty string.
  std::string run() {
    const auto rows = catalog();
    const std::size_t jobs = rows.size() * static_cast<std::size_t>(options_.grid.size_max);
    for (std::size_t job = next_++; job < jobs && failure_.empty(); job = next_++) {
      const std::size_t row = job % rows.size();
      const int size = options_.grid.size_max - static_cast<int>(job / rows.size());
      if (!options_.verb.empty() && name_of(rows[row].verb) != options_.verb) continue;
      Tally tally;
      for_each_case(rows[row], size, options_.grid, [&](const Case& one) { prove(one, tally); });
      const std::lock_guard guard(lock_);
      tallies_[row].cases += tally.cases;
      tallies_[row].plans += tally.plans;
      tallies_[row].steps += tally.steps;
      tallies_[row].messages += tally.messages;
    }
    return failure_;
  }

 private:
  void prove(const Case& specs, Tally& tally) {
    if (!failure_.empty()) return;
    plans_.clear();
    for (const Spec& spec : specs) plans_.push_back(make_plan(spec));
    ++tally.cases;
    // Every 16th case also runs in other schedules, to keep the prover itself honest.
    const Proof proof = prover_.prove(plans_, tally.cases % 16 == 0 ? static_cast<std::uint64_t>(tally.cases) : 0);
    if (!proof.holds()) failure_ = fmt::format("{}\n  {}", describe(specs.front()), proof.failure);
    tally.plans += static_cast<std::int64_t>(plans_.size());
    tally.steps += proof.steps;
    tally.messages += proof.messages;
  }

  const Options& options_;
  std::atomic<std::size_t>& next_;
  std::vector<Tally>& tallies_;
  std::mutex& lock_;
  Prover prover_;
  std::vector<Plan> plans_;
  std::string failure_;
};

int prove_all(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Tally> tallies(catalog().size());
  std::vector<std::string> failures(static_cast<std::size_t>(options.threads));
  std::atomic<std::size_t> next = 0;
  std::mutex lock;
  std::vector<std::jthread> threads;
  for (std::string& failure : failures) {
    threads.emplace_back([&] { failure = Worker(options, next, tallies, lock).run(); });
  }
  threads.clear();
  for (const std::string& failure : failures) {
    if (failure.empty()) continue;
    fmt::print("NOT PROVED: {}\n", failure);
    return EXIT_FAILURE;
  }
  fmt::print("{:<16}{:<20}{:>10}{:>12}{:>14}{:>14}\n", "verb", "algorithm", "cases", "plans", "steps", "messages");
  Tally all;
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    const Tally& t = tallies[i];
    if (t.cases == 0) continue;
    fmt::print("{:<16}{:<20}{:>10}{:>12}{:>14}{:>14}\n", name_of(catalog()[i].verb), name_of(catalog()[i].algorithm),
               t.cases, t.plans, t.steps, t.messages);
    all.cases += t.cases;
    all.plans += t.plans;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("proved {} plans of {} collectives, sizes 1 to {}{}, in {:.1f} s\n", all.plans, all.cases,
             options.grid.size_max,
             options.grid.sample > 1 ? fmt::format(", a sample of 1 in {}", options.grid.sample) : "", seconds.count());
  return EXIT_SUCCESS;
}

// A ring all-reduce in which rank 1 forgets to add its part once.
int prove_broken() {
  std::vector<Plan> plans = make_plans({.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .size = 4, .count = 8});
  for (Step& step : plans[1].steps) {
    if (step.act != Act::reduce) continue;
    step.act = Act::copy;
    break;
  }
  const Proof proof = Prover().prove(plans);
  fmt::print("{}\n", proof.holds() ? "the broken plan was proved, which must not be" : "NOT PROVED: " + proof.failure);
  return proof.holds() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--quick") options.grid.sample = 97;
    else if (word == "--sample") options.grid.sample = std::max(1, std::atoi(value().c_str()));
    else if (word == "--sizes") options.grid.size_max = std::max(1, std::atoi(value().c_str()));
    else if (word == "--threads") options.threads = std::max(1, std::atoi(value().c_str()));
    else if (word == "--verb") options.verb = value();
    else if (word == "--broken") options.broken = true;
    else {
      fmt::print(stderr, "{}", usage);
      return word == "--help" ? EXIT_SUCCESS : 2;
    }
  }
  return options.broken ? prove_broken() : prove_all(options);
}
