// tune.cpp: the comparisons of `tutti tune`.
// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "bench/comparison.hpp"
#include "bench/libraries.hpp"
#include "launch/cores.hpp"

namespace tutti::bench {

namespace {

constexpr Verb compared_verbs[] = {Verb::all_reduce,     Verb::reduce, Verb::broadcast, Verb::all_gather,
                                   Verb::reduce_scatter, Verb::gather, Verb::scatter,   Verb::all_to_all,
                                   Verb::scan,           Verb::exscan};

// Machines vary by some per cent from one job to the next; in one case by more than in the mean of several.
constexpr double worth_a_limit = 1.04, worth_a_row = 1.1;

class Tuning {
 public:
  explicit Tuning(const TuneOptions& options) : options_(options) {}

  void settle_shared_memory() {
    say("# shared memory, {} ranks: speed of each value against the one that holds so far\n", options_.ranks);
    const bool oversubscribed = options_.ranks > launch::usable_processors();
    for (const Question& question : questions_about_shared_memory(options_.ranks, oversubscribed)) settle(question);
  }
  void settle_algorithms() {
    say("\n# TCP, {} ranks: µs of each algorithm\n", options_.ranks);
    for (const Verb verb : compared_verbs) settle(verb);
  }
  [[nodiscard]] const Table& table() const { return table_; }

 private:
  template <typename... Parts>
  static void say(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::print(format, std::forward<Parts>(parts)...);
    std::fflush(stdout);
  }

  // The same work for jobs that differ in their table only; the first table runs twice.
  Times comparison(const std::vector<Table>& tables, const std::string& backend,
                   const std::vector<BenchCase>& bench_cases) {
    Comparison comparison(coordinator_, options_.repeats);
    std::vector<Table> compared = tables;
    compared.insert(compared.begin(), tables.front());
    for (const Table& table : compared) {
      const std::string name = fmt::format("table-{}", ++jobs_);
      const std::string path = fmt::format("{}/{}.json", coordinator_.folder(), name);
      std::ofstream(path) << to_text(table);
      comparison.add_tutti(tutti_job(coordinator_, {.program = own_program(),
                                                    .backend = backend,
                                                    .ranks = options_.ranks,
                                                    .library = name,
                                                    .table_path = path}));
    }
    Times times(compared.size());
    for (const BenchCase& bench_case : bench_cases) {
      const std::vector<Measurement> measured = comparison.measure(bench_case);
      for (std::size_t i = 0; i < measured.size(); ++i) {
        if (measured[i].wrong > 0) {
          throw Error(fmt::format("{} of {} gave wrong results with the table {}",
                                  bench_name_of(bench_case.bench_verb()), format_bytes(bench_case.bytes()),
                                  to_text(compared[i])));
        }
        times[i].push_back(measured[i].us_median);
      }
    }
    return times;
  }

  void settle(const Question& question) {
    const std::int64_t now = limit_of(table_.shared, question.limit);
    std::vector<std::int64_t> values{now};
    std::ranges::copy_if(question.values, std::back_inserter(values), [&](auto value) { return value != now; });
    std::vector<Table> tables;
    for (const std::int64_t value : values) {
      tables.push_back(table_);
      limit_of(tables.back().shared, question.limit) = value;
    }
    const Standing standing = standing_of(comparison(tables, "shm", question.bench_cases));
    const std::size_t winner = winner_of(standing, worth_a_limit);
    const auto text = [&](std::int64_t value) {
      if (question.limit.ends_with("ranks_max")) return std::to_string(value);
      return value == never ? "never" : format_bytes(value);
    };
    say("{:<25}", question.limit);
    for (std::size_t i = 0; i < values.size(); ++i) say(" {:>10} {:.2f}x", text(values[i]), standing.speeds[i]);
    say("  ± {:.2f}   {}\n", standing.noise - 1, winner == 0 ? "stays" : fmt::format("→ {}", text(values[winner])));
    table_ = tables[winner];
  }

  // One contender for each algorithm, with the segments that the cost model thinks best; the model's own choice goes
  // first.
  void settle(Verb verb) {
    std::vector<std::vector<Choice>> contenders;
    std::vector<BenchCase> bench_cases;
    for (const std::int64_t bytes : compared_bytes) {
      bench_cases.push_back(
          make_bench_case({.verb = verb, .in_place = has_in_place_form(verb)}, bytes, options_.ranks));
    }
    std::vector<Choice> model;
    for (const BenchCase& bench_case : bench_cases) model.push_back(select(shape_of(bench_case), Table{}));
    contenders.push_back(model);
    for (const Candidate& named : candidates(shape_of(bench_cases.front()), Table{})) {
      std::vector<Choice> choices;
      for (const BenchCase& bench_case : bench_cases) {
        for (const Candidate& one : candidates(shape_of(bench_case), Table{})) {
          if (one.choice.algorithm == named.choice.algorithm) choices.push_back(one.choice);
        }
      }
      if (choices != model && choices.size() == bench_cases.size()) contenders.push_back(choices);
    }
    if (contenders.size() == 1) return;
    std::vector<Table> tables;
    for (const auto& choices : contenders) {
      tables.push_back({.rows = rows_of(verb, options_.ranks, choices)});
    }
    take(verb, contenders, comparison(tables, "native", bench_cases));
  }

  void take(Verb verb, const std::vector<std::vector<Choice>>& contenders, const Times& times) {
    std::vector<Choice> taken;
    for (std::size_t bench_case = 0; bench_case < std::size(compared_bytes); ++bench_case) {
      Times of_bench_case;
      for (const auto& own : times) of_bench_case.push_back({own[bench_case]});
      const std::size_t winner = winner_of(standing_of(of_bench_case), worth_a_row);
      taken.push_back(contenders[winner][bench_case]);
      const bool stays = taken.back() == contenders.front()[bench_case];
      say("{:<15} {:>8}", tutti::name_of(verb), format_bytes(compared_bytes[bench_case]));
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        const double us = times[i == 0 ? 0 : i + 1][bench_case];  // after the first comes its copy
        say("  {} {:.1f}", tutti::name_of(contenders[i][bench_case].algorithm), us);
      }
      say("   {}\n", stays ? "stays" : fmt::format("→ {}", tutti::name_of(taken.back().algorithm)));
    }
    if (taken == contenders.front()) return;
    for (TableRow& row : rows_of(verb, options_.ranks, taken)) table_.rows.push_back(std::move(row));
  }

  [[nodiscard]] Shape shape_of(const BenchCase& bench_case) const {
    return {.verb = bench_case.verb, .bytes = bench_case.bytes(), .topology = Topology::on_one_node(options_.ranks)};
  }

  const TuneOptions& options_;
  Coordinator coordinator_{};
  Table table_{};
  int jobs_ = 0;
};

int changed_limits(const SharedLimits& limits) {
  return static_cast<int>(std::ranges::count_if(
      shared_limits, [&](const SharedLimit& one) { return limits.*one.value != SharedLimits{}.*one.value; }));
}

void check(const TuneOptions& options) {
  if (options.ranks < 2) {
    throw InvalidArgument(fmt::format("-n {}: there is nothing to choose below 2 ranks", options.ranks));
  }
  if (options.repeats < 1) throw InvalidArgument("--repeats must be at least 1");
  for (const std::string& backend : options.backends) {
    if (backend == "shm" || backend == "native") continue;
    throw InvalidArgument(fmt::format("--backend {}: there are choices to make in shm and native", backend));
  }
  // Checked first: minutes of measuring must not end with a folder that cannot be written.
  const std::filesystem::path folder = std::filesystem::absolute(options.output_path).parent_path();
  if (access(folder.c_str(), W_OK) != 0 || std::filesystem::is_directory(options.output_path)) {
    throw InvalidArgument(fmt::format("--output {}: cannot be written", options.output_path));
  }
}

}  // namespace

void run_tune(const TuneOptions& options) {
  check(options);
  Tuning tuning(options);
  for (const std::string& backend : options.backends) {
    if (backend == "shm") {
      tuning.settle_shared_memory();
    } else {
      tuning.settle_algorithms();
    }
  }
  std::ofstream file(options.output_path);
  file << to_text(tuning.table()) << '\n';
  if (!file.flush()) throw Error(fmt::format("{}: cannot be written", options.output_path));
  fmt::print(
      "\n{}: {} limits of shared memory and {} rows that differ from what is built in.\n"
      "Use it: TUTTI_TABLE={} tuttirun …\n",
      options.output_path, changed_limits(tuning.table().shared), tuning.table().rows.size(), options.output_path);
}

}  // namespace tutti::bench
