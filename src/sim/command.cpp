// command.cpp: `tutti sim`: what the plans of a collective do on a cluster that one does not have.
// SPDX-License-Identifier: Apache-2.0
#include "sim/command.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tutti/error.hpp>

#include "launch/command.hpp"
#include "launch/sizes.hpp"
#include "sim/curves.hpp"
#include "sim/experiment.hpp"
#include "sim/report.hpp"

namespace tutti::sim {

namespace {

std::string usual(const ThroughputCurve& throughput) {
  return fmt::format("{:.3g}", 1e-9 / throughput.seconds_per_byte());
}

// As typed; times in microseconds, speeds in GB/s.
struct Words {
  std::string verb = "all_reduce", ranks = "8", bytes = "1M", eager = "64K", dead, plot, table;
  std::vector<std::string> algorithms, slow;
  int hosts = 0, ranks_per_host = 8, cores = 0, calls = 1;
  double latency = CostModel{}.between.latency * 1e6, bandwidth = 1e-9 / CostModel{}.between.seconds_per_byte;
  double inside_latency = CostModel{}.inside.latency * 1e6;
  double overhead = CostModel{}.overhead * 1e6, call = 0, turn = 0, wake = Cluster{}.wake * 1e6, oversubscription = 1;
  std::string inside_bandwidth = usual(Cluster{}.inside), reduce_bandwidth = usual(Cluster{}.reduce);
  std::string copy_bandwidth = usual(Cluster{}.copy), eager_bandwidth;
  bool json = false, every_rank = false;
};

int number_of(const std::string& option, const std::string& text, const char* example) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0) return value;
  throw InvalidArgument(fmt::format("{} {}: \"{}\" is not a rank; an example is {}", option, text, text, example));
}

SlowRank slow_rank(const std::string& text) {
  const std::size_t colon = text.find(':');
  double factor = 0;
  try {
    if (colon != std::string::npos) factor = std::stod(text.substr(colon + 1));
  } catch (const std::exception&) {}
  if (factor <= 0) throw InvalidArgument(fmt::format("--slow {}: RANK:FACTOR is needed, such as 3:4", text));
  return {.rank = number_of("--slow", text.substr(0, colon), "3:4"), .factor = factor};
}

Cluster cluster_of(const Words& words) {
  if (!(words.bandwidth > 0))
    throw InvalidArgument(fmt::format("--bandwidth {}: more than 0 GB/s is needed", words.bandwidth));
  if (!(words.inside_latency >= -words.overhead)) {
    throw InvalidArgument(
        fmt::format("--inside-latency {}: a message does not arrive before it is sent; −{} µs (--overhead) "
                    "is the least",
                    words.inside_latency, words.overhead));
  }
  for (const auto& [name, value] :
       {std::pair{"--latency", words.latency}, std::pair{"--overhead", words.overhead}, std::pair{"--call", words.call},
        std::pair{"--turn", words.turn}, std::pair{"--wake", words.wake}}) {
    if (!(value >= 0)) throw InvalidArgument(fmt::format("{} {}: a time in µs is needed", name, value));
  }
  Cluster cluster;
  cluster.cores = words.cores;
  cluster.inside = parse_throughput("--inside-bandwidth", words.inside_bandwidth);
  if (!words.eager_bandwidth.empty())
    cluster.inside_eager = parse_throughput("--eager-bandwidth", words.eager_bandwidth);
  cluster.reduce = parse_throughput("--reduce-bandwidth", words.reduce_bandwidth);
  cluster.copy = parse_throughput("--copy-bandwidth", words.copy_bandwidth);
  cluster.speed = {
      .inside = {.latency = words.inside_latency * 1e-6, .seconds_per_byte = cluster.inside.seconds_per_byte()},
      .between = {.latency = words.latency * 1e-6, .seconds_per_byte = 1e-9 / words.bandwidth},
      .overhead = words.overhead * 1e-6,
      .reduce_seconds_per_byte = cluster.reduce.seconds_per_byte()};
  cluster.call = words.call * 1e-6;
  cluster.oversubscription = words.oversubscription;
  cluster.eager_bytes_max = launch::parse_size("--eager", words.eager);
  cluster.turn = words.turn * 1e-6;
  cluster.wake = words.wake * 1e-6;
  for (const std::string& text : words.slow) cluster.slow.push_back(slow_rank(text));
  return cluster;
}

// Without a file, the cluster's figures decide.
Table table_of(const Words& words, const Cluster& cluster) {
  if (words.table.empty()) return {.model = cluster.speed, .rows = {}};
  std::ifstream file(words.table);
  if (!file) throw InvalidArgument(fmt::format("--table {}: the file cannot be read", words.table));
  return table_from_text(std::string(std::istreambuf_iterator<char>(file), {}));
}

Experiment experiment_of(const Words& words) {
  Experiment experiment{.verb = verb_from_name(words.verb), .cluster = cluster_of(words)};
  experiment.table = table_of(words, experiment.cluster);
  if (is_message(experiment.verb))
    throw InvalidArgument(fmt::format("{} is no collective: there is nothing to plan", words.verb));
  for (const std::string& name : words.algorithms) {
    if (name == "selected") experiment.selected_only = true;
    else if (name != "all") experiment.algorithms.push_back(algorithm_from_name(name));
  }
  if (words.calls < 1) throw InvalidArgument(fmt::format("--calls {}: at least 1 is needed", words.calls));
  experiment.calls = words.calls;
  experiment.every_rank = words.every_rank;
  if (!words.dead.empty()) {
    const std::size_t colon = words.dead.find(':');
    const std::string how = colon == std::string::npos ? "" : words.dead.substr(colon + 1);
    if (colon != std::string::npos && how != "host")
      throw InvalidArgument(fmt::format("--dead {}: RANK or RANK:host is needed", words.dead));
    experiment.cluster.dead = number_of("--dead", words.dead.substr(0, colon), "3");
    experiment.silent_death = how == "host";
  }
  return experiment;
}

void place(Cluster& cluster, const Words& words, std::int64_t ranks) {
  if (ranks < 1 || ranks > 16384)
    throw InvalidArgument(fmt::format("--ranks {}: 1 to 16384 ranks can be simulated", ranks));
  cluster.ranks = static_cast<int>(ranks);
  if (words.hosts < 0 || words.hosts > ranks)
    throw InvalidArgument(fmt::format("--hosts {}: 1 to {} hosts are needed for {} ranks", words.hosts, ranks, ranks));
  if (words.ranks_per_host < 1)
    throw InvalidArgument(fmt::format("--ranks-per-host {}: at least 1 is needed", words.ranks_per_host));
  cluster.ranks_per_host =
      words.hosts > 0 ? (cluster.ranks + words.hosts - 1) / words.hosts : std::min(words.ranks_per_host, cluster.ranks);
}

void write_plot(const std::string& file, const Experiment& experiment, const std::vector<std::vector<Trial>>& calls) {
  std::ofstream out(file);
  out << svg_of(plot_of(experiment, calls));
  out.close();
  if (!out) throw Error(fmt::format("--plot {}: the file cannot be written", file));
}

void simulate_all(const Words& words) {
  Experiment experiment = experiment_of(words);
  const auto ranks = launch::parse_sizes("--ranks", words.ranks), bytes = launch::parse_sizes("--bytes", words.bytes);
  std::vector<std::vector<Trial>> calls;
  for (const std::int64_t n : ranks) {
    place(experiment.cluster, words, n);
    for (const std::int64_t size : bytes) {
      experiment.bytes = experiment.verb == Verb::barrier ? 0 : size;
      calls.push_back(run(experiment));
      if (!words.json) continue;
      for (const Trial& trial : calls.back()) fmt::print("{}\n", json_of(experiment, trial));
      std::fflush(stdout);
    }
  }
  if (!words.json && calls.size() == 1) fmt::print("{}", table_of(experiment, calls.front()));
  if (!words.json && calls.size() > 1)
    fmt::print("{}, {} ranks per host; {}\n\n{}", name_of(experiment.verb), experiment.cluster.ranks_per_host,
               describe_figures(experiment.cluster), table_of(calls));
  if (!words.plot.empty()) write_plot(words.plot, experiment, calls);
}

}  // namespace

void add_command(CLI::App& tutti) {
  auto words = std::make_shared<Words>();
  CLI::App* sim = tutti.add_subcommand("sim", "Simulate a collective on up to 16384 ranks, by every algorithm.");
  sim->add_option("verb", words->verb, "all_reduce, broadcast, all_to_all, …")->required();
  sim->add_option("-n,--ranks", words->ranks, "ranks; a range 8:1024 or a list 8,64 for several")
      ->capture_default_str();
  sim->add_option("--bytes", words->bytes, "the whole array, all blocks together; also a range or a list")
      ->capture_default_str();
  sim->add_option("--algorithm", words->algorithms, "all (default), selected, or names as in docs/algorithms.md")
      ->delimiter(',');
  sim->add_option("--calls", words->calls, "so many, one after the other: the time is that of one, on average")
      ->capture_default_str();
  sim->add_option("--table", words->table, "select by this table (TUTTI_TABLE); otherwise the figures below decide");
  const char* const topology = "Cluster";
  sim->add_option("--hosts", words->hosts, "hosts; instead of --ranks-per-host")->group(topology);
  sim->add_option("--ranks-per-host", words->ranks_per_host, "consecutive ranks on a host")
      ->capture_default_str()
      ->group(topology);
  sim->add_option("--cores", words->cores, "cores of a host that its ranks share; 0: one for each")
      ->capture_default_str()
      ->group(topology);
  const auto figure = [&](const char* name, double& value, const char* text) {
    sim->add_option(name, value, text)->capture_default_str()->group(topology);
  };
  figure("--latency", words->latency, "between hosts, µs");
  figure("--bandwidth", words->bandwidth, "of a host's network card, each way, GB/s");
  figure("--inside-latency", words->inside_latency, "inside a host, after the sender is done, µs; may be negative");
  const auto throughput = [&](const char* name, std::string& value, const char* text) {
    sim->add_option(name, value, text)->capture_default_str()->group(topology);
  };
  throughput("--inside-bandwidth", words->inside_bandwidth,
             "at which a core puts bytes in or takes them out, GB/s; by size of message: 4K:9,1M:5.5");
  sim->add_option("--eager-bandwidth", words->eager_bandwidth,
                  "the same for messages that do not wait for their receiver; otherwise as --inside-bandwidth")
      ->group(topology);
  figure("--overhead", words->overhead, "that a rank spends per message, at each end, µs");
  figure("--call", words->call, "that a rank spends on a call before its first message, µs");
  throughput("--reduce-bandwidth", words->reduce_bandwidth, "at which a core reduces, GB/s; or by size");
  throughput("--copy-bandwidth", words->copy_bandwidth, "at which a core copies, GB/s; or by size");
  figure("--oversubscription", words->oversubscription,
         "of the network core: 4 means a quarter of what hosts could send");
  figure("--turn", words->turn, "to hand a core from one rank to the next, where ranks share cores, µs");
  figure("--wake", words->wake, "until an idle core runs a rank, where ranks share cores, µs");
  sim->add_option("--eager", words->eager, "longer messages wait for their receiver")
      ->capture_default_str()
      ->group(topology);
  sim->add_option("--slow", words->slow, "RANK:FACTOR: this rank takes FACTOR times as long; may be repeated")
      ->group("What goes wrong");
  sim->add_option("--dead", words->dead, "RANK: dead before the call; RANK:host: its host is gone, too")
      ->group("What goes wrong");
  sim->add_flag("--every-rank", words->every_rank, "simulate all ranks, also where one host can stand for all");
  sim->add_flag("--json", words->json, "one JSON object per line and algorithm");
  sim->add_option("--plot", words->plot, "write curves over bytes or ranks to this file (SVG)");
  sim->footer(launch::examples({
      {"tutti sim all_reduce --ranks 4096 --bytes 1M", "every algorithm on 512 hosts of 8"},
      {"tutti sim broadcast --ranks 8:16384 --bytes 64K --plot scale.svg", "how it grows, as a picture"},
      {"tutti sim all_reduce --ranks 64 --bytes 8:64M --ranks-per-host 1", "where each algorithm wins"},
      {"tutti sim all_reduce --ranks 64 --slow 5:10", "one rank is ten times slower"},
      {"tutti sim all_reduce --ranks 4096 --dead 17", "how fast everybody knows"},
  }));
  sim->callback([words] { simulate_all(*words); });
}

}  // namespace tutti::sim
