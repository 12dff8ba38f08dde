// command.cpp: the options of `tutti bench` and `tutti tune`.
// SPDX-License-Identifier: Apache-2.0
#include "bench/command.hpp"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "bench/libraries.hpp"
#include "bench/library_job.hpp"
#include "bench/run.hpp"
#include "bench/tune.hpp"
#include "bench/tutti_rank.hpp"
#include "launch/command.hpp"
#include "launch/sizes.hpp"

namespace tutti::bench {

namespace {

// As typed; BenchOptions is what it means.
struct Words {
  std::vector<std::string> verbs{};
  std::string sizes = "8:64M", dtype = "float32", memory = "heap";
  bool in_place = false, out_of_place = false, fresh = false;
  BenchOptions options{};
};

std::vector<BenchVerb> verbs_of(const std::vector<std::string>& names, int ranks) {
  std::vector<BenchVerb> verbs;
  for (const std::string& name : names) {
    if (name != "all") {
      verbs.push_back(verb_from_bench_name(name));
      continue;
    }
    for (const BenchVerb& verb : all_verbs()) {
      if (verb != BenchVerb(Verb::send) || ranks == 2) verbs.push_back(verb);
    }
  }
  return verbs;
}

BenchOptions meaning_of(const Words& words) {
  BenchOptions options = words.options;
  options.verbs = verbs_of(words.verbs, options.ranks);
  options.sizes = launch::parse_sizes("--sizes", words.sizes);
  options.dtype = dtype_from_name(words.dtype);
  options.memory = memory_from_name(words.memory);
  options.forms.clear();
  if (words.in_place || (!words.out_of_place && !options.is_stale)) options.forms.push_back(Form::in_place);
  if (words.out_of_place || (options.is_stale && !words.in_place)) options.forms.push_back(Form::out_of_place);
  return options;
}

template <typename Work>
void unless_interrupted(Work work) {
  try {
    work();
  } catch (const Interrupted& interrupted) {
    throw CLI::RuntimeError(128 + interrupted.signal);
  }
}

void add_bench(CLI::App& tutti) {
  CLI::App* bench = tutti.add_subcommand("bench", "Measure verbs on this machine, against other libraries too");
  auto words = std::make_shared<Words>();
  BenchOptions& options = words->options;
  bench
      ->add_option("VERB", words->verbs,
                   "all_reduce, broadcast, …, barrier, ping_pong, sendrecv, window; several, or all")
      ->required();
  bench->add_option("-n,--ranks", options.ranks, "ranks, each a process (default: 2)");
  bench->add_option("--sizes", words->sizes,
                    "bytes of the larger array: a list, or a range that doubles (default: 8:64M)");
  bench->add_option("--dtype", words->dtype, "elements (default: float32)");
  bench
      ->add_option("--backend", options.backends,
                   "one or more, to compare: auto, native, shm, ucx, mpi (default: auto)")
      ->delimiter(',');
  bench->add_flag("--in-place", words->in_place, "one array, where the verb allows it (default)");
  bench->add_flag("--out-of-place", words->out_of_place,
                  "two arrays; together with --in-place: both, one after the other");
  bench->add_option("--memory", words->memory,
                    "heap, or empty: memory that local peers read without a copy (default: heap)");
  CLI::Option* fresh = bench->add_flag("--fresh", words->fresh, "every array is rewritten before its call (default)");
  bench->add_flag("--stale", options.is_stale, "arrays are never rewritten; two arrays per call")->excludes(fresh);
  bench
      ->add_option("--against", options.against,
                   fmt::format("libraries to compare with: {}", fmt::join(peer_names, ", ")))
      ->delimiter(',');
  bench->add_flag("--limits", options.limits,
                  "also measure what this machine's memory allows, and how close each row comes");
  bench->add_option("--repeats", options.repeats, "turns of each library per size (default: 7)");
  bench
      ->add_option_function<std::string>(
          "--bind", [words](const std::string& to) { words->options.bound = to == "core"; },
          "core: each rank keeps to one processor, those of all libraries alike; none (default)")
      ->check(CLI::IsMember({"core", "none"}));
  bench->add_option("--hosts", options.hosts.names, "hosts to spread the ranks over evenly: namespaces of this machine")
      ->delimiter(',');
  bench->add_option("--agent", options.hosts.agent, "what starts a process there: AGENT HOST COMMAND…");
  bench->add_option("--interface", options.hosts.network_interface,
                    "the network interface between the hosts, such as eth0");
  bench->add_option("--json", options.json_path, "file for one JSON object per line, size and library");
  bench->add_option("--plot", options.plot_path, "file for a picture of the curves (SVG)");
  bench->footer(launch::examples({
      {"tutti bench all_reduce", "2 ranks, 8 bytes to 64 MiB"},
      {"tutti bench all_reduce -n 4 --against openmpi,mpich,impi", "and how other libraries do"},
      {"tutti bench all --sizes 8,4K,1M --json out.json", "every verb at three sizes"},
  }));
  bench->callback([words] {
    unless_interrupted([&] {
      if (!run(meaning_of(*words))) throw CLI::RuntimeError(1);
    });
  });
}

void add_tune(CLI::App& tutti) {
  CLI::App* tune =
      tutti.add_subcommand("tune", "Measure which ways are fastest here, and write them down for TUTTI_TABLE");
  auto options = std::make_shared<TuneOptions>();
  tune->add_option("-n,--ranks", options->ranks, "ranks, each a process: as many as your jobs have here (default: 2)");
  tune->add_option("--backend", options->backends, "what to tune: shm, native (default: both)")->delimiter(',');
  tune->add_option("-o,--output", options->output_path, "file for the table (default: tutti-table.json)");
  tune->add_option("--repeats", options->repeats, "turns of each table per size (default: 7)");
  tune->footer(launch::examples({
      {"tutti tune -n 8", "8 ranks, shared memory and TCP: a minute or two"},
      {"TUTTI_TABLE=tutti-table.json tuttirun -n 8 ./program", "a job that goes by it"},
      {"TUTTI_TABLE=tutti-table.json tutti doctor", "what it changes"},
  }));
  tune->callback([options] { unless_interrupted([&] { run_tune(*options); }); });
}

// The command that `tutti bench` starts as its ranks; users do not type it.
void add_rank(CLI::App& tutti) {
  CLI::App* rank = tutti.add_subcommand("bench-rank", "A rank of tutti bench")->group("");
  auto options = std::make_shared<TuttiRankOptions>();
  rank->add_option("--socket", options->socket_path)->required();
  rank->add_option("--name", options->name)->required();
  rank->add_option("--backend", options->backend)->required();
  rank->add_option("--meeting-point", options->meeting_point)->required();
  rank->callback([options] { run_tutti_rank(*options); });
}

}  // namespace

void add_command(CLI::App& tutti) {
  add_bench(tutti);
  add_tune(tutti);
  add_rank(tutti);
}

}  // namespace tutti::bench
