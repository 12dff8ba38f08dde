// watch.cpp: `tutti where`, `tutti top`, `tutti trace` and `tutti report`.
// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "cli/style.hpp"
#include "cli/text_table.hpp"
#include "launch/command.hpp"
#include "record/jobs.hpp"
#include "record/own_file.hpp"
#include "watch/diagnosis.hpp"
#include "watch/perfetto.hpp"
#include "watch/report_data.hpp"
#include "watch/report_page.hpp"
#include "watch/words.hpp"

namespace tutti::cli {
namespace {

using namespace std::chrono_literals;
using record::FoundJob;
using record::FoundRecord;
using watch::RankView;
using watch::Timeline;

/// The stacks of those that are in no call: the others' lines are in their records.
void ask_those_outside(FoundJob& job) {
  std::vector<FoundRecord*> outside;
  for (FoundRecord& rank : job.ranks) {
    if (rank.snapshot.oldest_under_way() == nullptr && rank.snapshot.life == record::Life::joined)
      outside.push_back(&rank);
    rank.snapshot.stack.clear();
  }
  record::ask_for_stacks(outside, 2s);
}

std::string say_job(const FoundJob& job) {
  const std::string by = job.launcher < 0 ? "" : fmt::format(", tuttirun is process {}", job.launcher);
  return fmt::format("Job {}: {} rank{}{}", job.id, job.size, job.size == 1 ? "" : "s", by);
}

std::string indented(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    result += "         " + text.substr(at, end - at) + '\n';
    at = end + 1;
  }
  return result;
}

std::string where_text(const FoundJob& job, const Style& style) {
  const Timeline timeline = Timeline::of_job(job);
  std::string text = style.paint(Tone::bold, say_job(job)) + "\n";
  for (const RankView& rank : timeline.ranks()) {
    text += fmt::format("{}  {}\n", style.paint(Tone::cyan, fmt::format("rank {:<3}", rank.snapshot.rank)),
                        watch::say_where(rank));
    const bool is_outside = rank.seen == watch::Seen::running && rank.snapshot.oldest_under_way() == nullptr;
    if (is_outside && !rank.snapshot.stack.empty()) text += style.paint(Tone::dim, indented(rank.snapshot.stack));
    if (is_outside && rank.snapshot.stack.empty() && rank.snapshot.answers)
      text += indented(
          "its Python does not answer: it is in native code that keeps the interpreter's lock (gdb or py-spy show "
          "more)");
  }
  const int elsewhere = job.size - static_cast<int>(timeline.ranks().size());
  if (elsewhere > 0)
    text += fmt::format("{} rank{} not on this machine, or not in the job yet\n", elsewhere,
                        elsewhere == 1 ? " is" : "s are");
  const auto findings = watch::diagnose(timeline);
  for (const watch::Finding& finding : findings)
    text += fmt::format("\n{} {}\n", style.paint(Tone::red, fmt::format("{}:", name_of(finding.kind))), finding.text);
  if (findings.empty()) text += "\nNothing is the matter.\n";
  return text;
}

std::string where_json(const FoundJob& job) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array(), findings = nlohmann::ordered_json::array();
  const Timeline timeline = Timeline::of_job(job);
  for (const RankView& rank : timeline.ranks()) {
    auto json = nlohmann::ordered_json::parse(to_json(rank.snapshot));
    json["where"] = watch::say_where(rank);
    json["running"] = rank.seen == watch::Seen::running;
    ranks.push_back(std::move(json));
  }
  for (const watch::Finding& finding : watch::diagnose(timeline))
    findings.push_back({{"kind", name_of(finding.kind)}, {"text", finding.text}, {"ranks", finding.ranks}});
  const nlohmann::ordered_json all{
      {"job", job.id}, {"size", job.size}, {"launcher", job.launcher}, {"findings", findings}, {"ranks", ranks}};
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void list_jobs(const Style& style) {
  const auto jobs = record::find_jobs(record::Read::counts);
  if (jobs.empty()) {
    fmt::print("No job of this user runs on this machine.\n");
    return;
  }
  TextTable table({{.title = "job"},
                   {.title = "ranks", .side = Side::right},
                   {.title = "tuttirun", .side = Side::right},
                   {.title = "command"}});
  for (const FoundJob& job : jobs)
    table.add({job.id, std::to_string(job.size), job.launcher < 0 ? "–" : std::to_string(job.launcher), job.command});
  fmt::print("{}\n`tutti where JOB` says where its ranks are.\n", table.text(style));
}

struct WhereOptions {
  std::string job;
  bool json = false;
};

void run_where(const WhereOptions& options) {
  const Style style = Style::for_output(Environment::of_process(), STDOUT_FILENO);
  if (options.job.empty() && !options.json) return list_jobs(style);
  FoundJob job = record::choose_job(record::find_jobs(record::Read::calls), options.job);
  ask_those_outside(job);
  fmt::print("{}", options.json ? where_json(job) : where_text(job, style));
}

/// A folder of records, or a job that runs.
Timeline timeline_of(const std::string& what) {
  if (std::filesystem::is_directory(what)) return Timeline::of_folder(what);
  FoundJob job = record::choose_job(record::find_jobs(record::Read::calls), what);
  ask_those_outside(job);
  return Timeline::of_job(job);
}

struct FileOptions {
  std::string what, output;
};

void add_where(CLI::App& tutti) {
  const auto options = std::make_shared<WhereOptions>();
  CLI::App* command =
      tutti.add_subcommand("where", "Which ranks of a running job are in which call, and who is missing");
  command->add_option("job", options->job, "The job, or a process of it; without one the jobs of this user are listed");
  command->add_flag("--json", options->json, "One JSON object, with the latest calls of each rank");
  command->footer(launch::examples({{"tutti where", "the jobs of this user on this machine"},
                                    {"tutti where 3f0a", "the job whose name begins like that"},
                                    {"tutti where 4711", "the job of that process"},
                                    {"tutti where --json | jq .findings", "for programs; of the only job"}}));
  command->callback([options] { run_where(*options); });
}

void add_top(CLI::App& tutti) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command =
      tutti.add_subcommand("top", "A running job, rank by rank: calls, bytes, waiting, memory, processor");
  command->add_option("job", options->job, "The job, or a process of it; not needed where there is only one");
  command->add_option("--every", options->seconds, "Seconds between two pages (1)")->check(CLI::Range(0.1, 3600.0));
  command->add_option("--times", options->times, "Pages to show (0: until q is typed)")->check(CLI::Range(0, 1000000));
  command->footer(launch::examples(
      {{"tutti top", "the only job; q leaves"}, {"tutti top 3f0a --times 2 | cat", "two pages, as text"}}));
  command->callback([options] { run_top(*options); });
}

void add_trace(CLI::App& tutti) {
  const auto options = std::make_shared<FileOptions>(FileOptions{.what = "", .output = "trace.json"});
  CLI::App* command = tutti.add_subcommand("trace", "The calls of all ranks as a timeline for ui.perfetto.dev");
  command->add_option("what", options->what, "A folder that tuttirun --trace wrote, or a running job")->required();
  command->add_option("-o,--output", options->output, "The file (trace.json)");
  command->footer(launch::examples({{"tuttirun -n 4 --trace calls train.py", "writes every call down"},
                                    {"tutti trace calls -o trace.json", "then open it in ui.perfetto.dev"}}));
  command->callback([options] {
    record::write_own_file(options->output, to_perfetto(timeline_of(options->what)));
    fmt::print("{}: open it in ui.perfetto.dev\n", options->output);
  });
}

void add_report(CLI::App& tutti) {
  const auto options = std::make_shared<FileOptions>(FileOptions{.what = "", .output = "report.html"});
  CLI::App* command =
      tutti.add_subcommand("report", "What a job did and what is the matter, as one page for a browser");
  command->add_option("what", options->what, "A folder that tuttirun --trace wrote, or a running job")->required();
  command->add_option("-o,--output", options->output, "The file (report.html)");
  command->footer(launch::examples({{"tuttirun -n 4 --trace calls train.py", "writes every call down"},
                                    {"tutti report calls -o report.html", "one page, which needs nothing else"}}));
  command->callback([options] {
    const Timeline timeline = timeline_of(options->what);
    const watch::ReportData data = watch::report_of(timeline);
    record::write_own_file(options->output, to_page(timeline, data));
    for (const watch::Finding& finding : data.findings) fmt::print("{}: {}\n", name_of(finding.kind), finding.text);
    fmt::print("{}: open it in a browser\n", options->output);
  });
}

}  // namespace

void add_watch(CLI::App& tutti) {
  add_where(tutti);
  add_top(tutti);
  add_trace(tutti);
  add_report(tutti);
}

}  // namespace tutti::cli
