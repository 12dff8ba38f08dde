// explain.cpp: `tutti explain`.
// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "cli/picture.hpp"
#include "cli/table_file.hpp"
#include "launch/command.hpp"
#include "launch/sizes.hpp"
#include "launch/suggest.hpp"
#include "plan/catalog.hpp"
#include "plan/print.hpp"
#include "sim/timeline.hpp"

namespace tutti::cli {

namespace {

// As typed.
struct Words {
  std::string verb, bytes = "1M", hosts, algorithm, dtype = "float32", svg, backend;
  int ranks = 8, root = 0, steps_of = 0;
  bool no_picture = false;
};

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (int i = 0; i < verb_count; ++i) {
    const auto verb = static_cast<Verb>(i);
    if (!catalog(verb).empty()) names.emplace_back(name_of(verb));
  }
  return names;
}

Verb parse_verb(const std::string& word) {
  try {
    return verb_from_name(word);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(error.what() + launch::did_you_mean(word, verb_names()));
  }
}

Question question_of(const Words& words, const Environment& environment) {
  Question question{.verb = parse_verb(words.verb),
                    .ranks = words.ranks,
                    .bytes = launch::parse_size("--bytes", words.bytes),
                    .dtype = dtype_from_name(words.dtype),
                    .root = words.root,
                    .backend = words.backend};
  if (question.backend.empty()) question.backend = environment.get("TUTTI_BACKEND").value_or("auto");
  if (question.ranks < 1) throw InvalidArgument(fmt::format("-n {}: at least one rank is needed", question.ranks));
  if (!words.hosts.empty()) question.node_of = parse_hosts(words.hosts, question.ranks);
  if (!words.algorithm.empty()) question.algorithm = algorithm_from_name(words.algorithm);
  return question;
}

void write_svg(const std::string& path, const std::string& drawing) {
  std::ofstream file(path);
  file << drawing;
  file.close();
  if (!file) throw Error(fmt::format("--svg {}: the file cannot be written", path));
}

void print_steps(const Explanation& answer, int rank) {
  Spec own = answer.spec;
  own.rank = rank;
  fmt::print("\n{}", to_text(make_plan(own)));
}

// What a picture needs takes memory for every step of every rank.
bool has_picture(const Words& words) {
  return !words.svg.empty() || (!words.no_picture && words.ranks <= text_picture_ranks_max);
}

void run(const Words& words, bool with_steps) {
  const Environment environment = Environment::of_process();
  const Style style = Style::for_output(environment, STDOUT_FILENO);
  const Question question = question_of(words, environment);
  const Table table = read_table(environment);
  const Explanation answer = explain(question, table);
  if (with_steps && (words.steps_of < 0 || words.steps_of >= words.ranks)) {
    throw InvalidArgument(fmt::format("--steps {}: the ranks are 0 to {}", words.steps_of, words.ranks - 1));
  }
  if (!words.svg.empty() && words.ranks > svg_ranks_max) {
    throw InvalidArgument(
        fmt::format("--svg: {} ranks could not be told apart in a drawing; at most {}", words.ranks, svg_ranks_max));
  }
  Timeline timeline{.ranks = words.ranks};
  if (has_picture(words))
    timeline = sim::rehearse(answer.spec, static_cast<std::int64_t>(size_of(question.dtype)), table);
  if (!words.svg.empty()) {
    write_svg(words.svg, draw_svg(timeline, {.title = headline(question, answer),
                                             .subtitle = fmt::format("{} · {} in virtual time", name_of(answer.shown),
                                                                     seconds_text(timeline.seconds))}));
  }
  fmt::print("{}", to_text(question, answer, style));
  if (!words.no_picture) fmt::print("\n{}", draw_text(timeline, style));
  if (with_steps) print_steps(answer, words.steps_of);
}

}  // namespace

void add_explain(CLI::App& tutti) {
  const auto words = std::make_shared<Words>();
  CLI::App* command = tutti.add_subcommand("explain", "Which algorithm a call takes, why, and a picture of it");
  command->add_option("verb", words->verb, "all_reduce, broadcast, …")->required()->type_name("VERB");
  command->add_option("-n,--ranks", words->ranks, "Ranks (default: 8)")->type_name("N");
  command->add_option("-b,--bytes", words->bytes, "The whole array: 8, 64K, 1M, 1G (default: 1M)")->type_name("SIZE");
  command->add_option("--hosts", words->hosts, "Hosts, the ranks spread evenly; or ranks per host: 4,4,8")
      ->type_name("H");
  command->add_option("--dtype", words->dtype, "Of the elements (default: float32)")->type_name("TYPE");
  command->add_option("--root", words->root, "For the verbs that have one (default: 0)")->type_name("RANK");
  command->add_option("--algorithm", words->algorithm, "Show this one instead")->type_name("NAME");
  command->add_option("-B,--backend", words->backend, "Of the job, or of the group (default: TUTTI_BACKEND, or auto)")
      ->type_name("NAME");
  CLI::Option* steps =
      command->add_option("--steps", words->steps_of, "Print the plan of a rank, step by step")->type_name("RANK");
  command->add_option("--svg", words->svg, "Write the picture to a file, to scale")->type_name("FILE");
  command->add_flag("--no-picture", words->no_picture, "No picture in the terminal");
  command->footer(
      launch::examples({{"tutti explain all_reduce -n 8 --bytes 1M", "the pick, the others, a picture"},
                        {"tutti explain broadcast -n 13 --bytes 64K --root 5", "any number of ranks"},
                        {"tutti explain all_reduce -n 16 --hosts 4 --bytes 64M", "across hosts"},
                        {"tutti explain all_gather -n 6 --algorithm ring --svg ring.svg", "drawn to scale"},
                        {"tutti explain all_reduce -n 4 -B mpi", "which backend serves it"},
                        {"tutti explain scan -n 4 --bytes 16 --steps 2", "what rank 2 does"}}) +
      "\n\nThe choice is that of a job here: by the table in TUTTI_TABLE, if it is set, and by the cost model."
      "\nIn the picture, yellow messages are to be reduced, blue ones are kept as they are.");
  command->callback([words, steps] { run(*words, steps->count() > 0); });
}

}  // namespace tutti::cli
