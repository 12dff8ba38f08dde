// run.cpp: `tutti bench`, from options to tables.
// SPDX-License-Identifier: Apache-2.0
#include "bench/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <set>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "bench/comparison.hpp"
#include "bench/libraries.hpp"
#include "bench/limits.hpp"
#include "bench/picture.hpp"
#include "bench/rank.hpp"
#include "bench/report.hpp"
#include "bench/statistics.hpp"
#include "launch/cores.hpp"
#include "sim/plot.hpp"

namespace tutti::bench {

namespace {

void check(const BenchOptions& options) {
  if (options.ranks < 1) throw InvalidArgument(fmt::format("-n {}: there must be at least one rank", options.ranks));
  if (options.is_stale &&
      std::find(options.forms.begin(), options.forms.end(), Form::in_place) != options.forms.end()) {
    throw InvalidArgument("--stale: a call in place changes its array; add --out-of-place and leave out --in-place");
  }
  if (const auto hosts = static_cast<int>(options.hosts.names.size()); hosts > 0 && options.ranks % hosts != 0) {
    throw InvalidArgument(fmt::format("--hosts: {} ranks do not fit {} hosts evenly", options.ranks, hosts));
  }
  if (options.hosts.names.empty() != options.hosts.agent.empty())
    throw InvalidArgument("--hosts and --agent go together: a rank is started by AGENT HOST COMMAND…");
  if (options.repeats < 1) throw InvalidArgument("--repeats must be at least 1");
  if (const int processors = launch::usable_processors(); options.bound && options.ranks > processors) {
    throw InvalidArgument(
        fmt::format("--bind core: {} ranks, but only {} processor{}; start fewer, or leave out --bind", options.ranks,
                    processors, processors == 1 ? "" : "s"));
  }
  for (const BenchVerb& verb : options.verbs) {
    if (verb == BenchVerb(Verb::send) && options.ranks != 2) {
      throw InvalidArgument(fmt::format("ping_pong goes between two ranks: give -n 2, not -n {}", options.ranks));
    }
  }
}

JobStart bound_if_asked(JobStart start, const BenchOptions& options) {
  for (ProcessStart& process : start.processes) {
    if (options.bound) process.environment.emplace_back(bind_variable, "core");
  }
  return start;
}

void add_libraries(Comparison& comparison, const Coordinator& coordinator, const BenchOptions& options) {
  for (const std::string& backend : options.backends) {
    const TuttiStart start{.program = own_program(),
                           .backend = backend,
                           .ranks = options.ranks,
                           .library = backend == "auto" ? "tutti" : "tutti-" + backend,
                           .hosts = options.hosts};
    comparison.add_tutti(bound_if_asked(tutti_job(coordinator, start), options));
  }
  for (const std::string& peer : options.against) {
    try {
      for (JobStart& start : peer_jobs(coordinator, peer, options.ranks, options.hosts))
        comparison.add_peer(bound_if_asked(std::move(start), options));
    } catch (const InvalidArgument&) {
      throw;
    } catch (const Error& error) {
      fmt::print(stderr, "# {} is not measured: {}\n", peer, error.what());
    }
  }
}

class Output {
 public:
  explicit Output(const std::string& json_path) {
    if (json_path.empty()) return;
    json_.open(json_path);
    if (!json_) throw InvalidArgument(fmt::format("--json {}: cannot be written", json_path));
  }
  void print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  void record(const Row& row) {
    if (json_.is_open()) json_ << json_lines(row) << std::flush;
  }

 private:
  std::ofstream json_{};
};

std::string title(const BenchCase& bench_case, int ranks) {
  const std::string_view form = !has_in_place_form(bench_case.verb) ? ""
                                : bench_case.in_place               ? ", in place"
                                                                    : ", out of place";
  return fmt::format("{}, {}{}{}, {} ranks, {} memory, {} data", bench_name_of(bench_case.bench_verb()),
                     tutti::name_of(bench_case.dtype), reduces(bench_case.verb) ? " sum" : "", form, ranks,
                     name_of(bench_case.memory), bench_case.is_stale ? "stale" : "fresh");
}

std::string method(int repeats) {
  return fmt::format("time of the slowest rank, median of {} interleaved turns", repeats);
}

// Prints as it measures, and keeps what it needs for that.
class Session {
 public:
  Session(const BenchOptions& options, Comparison& comparison, Output& output)
      : options_(options), comparison_(comparison), output_(output) {
    for (const std::string& text : comparison_.descriptions()) output_.print(fmt::format("# {}\n", text));
    if (!options_.limits) return;
    limits_.emplace(options_.ranks);
    output_.print(fmt::format("# {}\n", limits_->describe()));
  }

  std::vector<Row> run_table(const std::vector<BenchCase>& bench_cases) {
    const TableShape shape{.names_library = options_.backends.size() > 1,
                           .has_peers = !options_.against.empty(),
                           .has_limits = options_.limits};
    const std::string what = title(bench_cases.front(), options_.ranks), how = method(options_.repeats);
    output_.print(fmt::format("\n# {}; {}\n{}", what, how, table_head(shape)));
    std::vector<Row> rows;
    for (const BenchCase& bench_case : bench_cases) {
      std::vector<double> limits;  // in turns, too: the machine's speed may change meanwhile
      const auto measure_limit = [&] {
        if (limits_) limits.push_back(limits_->us_of(bench_case));
      };
      rows.push_back({.bench_case = bench_case,
                      .ranks = options_.ranks,
                      .measurements = comparison_.measure(bench_case, measure_limit)});
      if (!limits.empty()) rows.back().us_limit = median(limits);
      tell_trouble(rows.back());
      output_.print(table_lines(rows.back(), shape));
      output_.record(rows.back());
    }
    output_.print(table_foot(rows));
    if (!options_.plot_path.empty()) draw(plot_of(rows, what, how));
    return rows;
  }

 private:
  // Why a library has no time: each reason once in a run.
  void tell_trouble(const Row& row) {
    for (const Measurement& one : row.measurements) {
      const std::string text = fmt::format("{}: {}", one.library, one.trouble.substr(0, one.trouble.find(';')));
      if (one.trouble.empty() || !told_.insert(text).second) continue;
      fmt::print(stderr, "# no time of {} for {} of {}: {}\n", one.library, bench_name_of(row.bench_case.bench_verb()),
                 format_bytes(row.bench_case.bytes()), one.trouble);
    }
  }

  void draw(const sim::Plot& plot) {
    if (plot.curves.empty()) return;
    const std::string path = picture_path(options_.plot_path, ++pictures_);
    std::ofstream file(path);
    file << sim::svg_of(plot);
    if (!file.flush()) throw InvalidArgument(fmt::format("--plot {}: cannot be written", path));
  }

  const BenchOptions& options_;
  Comparison& comparison_;
  Output& output_;
  std::optional<Limits> limits_{};
  std::set<std::string> told_{};
  int pictures_ = 0;
};

bool all_right(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::all_of(row.measurements.begin(), row.measurements.end(),
                       [](const Measurement& one) { return one.is_peer || one.wrong == 0; });
  });
}

}  // namespace

std::vector<BenchCase> cells_of(const BenchOptions& options, const BenchVerb& verb, Form form) {
  std::vector<BenchCase> bench_cases;
  for (const std::int64_t bytes : options.sizes) {
    const BenchCase bench_case = make_bench_case({.verb = verb.verb,
                                                  .dtype = options.dtype,
                                                  .in_place = form == Form::in_place,
                                                  .memory = options.memory,
                                                  .exchange = verb.exchange,
                                                  .is_stale = options.is_stale},
                                                 bytes, options.ranks);
    if (std::find(bench_cases.begin(), bench_cases.end(), bench_case) == bench_cases.end())
      bench_cases.push_back(bench_case);
  }
  return bench_cases;
}

bool run(const BenchOptions& options) {
  check(options);
  Output output(options.json_path);
  const Coordinator coordinator;
  Comparison comparison(coordinator, options.repeats);
  add_libraries(comparison, coordinator, options);
  Session session(options, comparison, output);
  bool right = true;
  for (const BenchVerb& verb : options.verbs) {
    std::vector<std::vector<BenchCase>> done;
    for (const Form form : options.forms) {
      const std::vector<BenchCase> bench_cases = cells_of(options, verb, form);
      if (bench_cases.empty() || std::find(done.begin(), done.end(), bench_cases) != done.end()) continue;
      done.push_back(bench_cases);
      right = all_right(session.run_table(bench_cases)) && right;
    }
  }
  return right;
}

}  // namespace tutti::bench
