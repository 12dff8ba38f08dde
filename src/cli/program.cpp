// program.cpp: the program `tutti`.
// SPDX-License-Identifier: Apache-2.0
#include "cli/program.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <tutti/error.hpp>

#include "bench/command.hpp"
#include "cli/completion.hpp"
#include "cli/doctor.hpp"
#include "cli/explain.hpp"
#include "cli/watch.hpp"
#include "launch/command.hpp"
#include "launch/run.hpp"
#include "launch/suggest.hpp"
#include "sim/command.hpp"

namespace tutti::cli {

namespace {

constexpr int status_failed = 1, status_bad_input = 2;

// The command that was being parsed: the last one that was named.
const CLI::App* innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return at;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + ' ' + app.get_name();
}

std::vector<std::string> known_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> known_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());  // not the hidden ones
  }
  return names;
}

// CLI11's own message, except for an unknown word: there the nearest known one helps more.
std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = *innermost(app);
  const std::vector<std::string> unknown = at.remaining();
  if (unknown.empty() && !known_commands(at).empty()) {
    return fmt::format("a command is needed: {}", fmt::join(known_commands(at), ", "));
  }
  if (unknown.empty()) return error.what();
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  if (word.starts_with('-')) {
    return fmt::format("no option {}{}", word, launch::did_you_mean(word, known_options(at)));
  }
  const std::vector<std::string> commands = known_commands(at);
  if (commands.empty()) return fmt::format("one word too many: {}", word);
  return fmt::format("no command {}{}", word, launch::did_you_mean(word, commands));
}

int refuse(const CLI::App& app, const std::string& message) {
  const std::string name = full_name(*innermost(app));
  fmt::print(stderr, "{}: {}\nTry `{} --help`.\n", name, message, name);
  return status_bad_input;
}

}  // namespace

std::unique_ptr<CLI::App> make_program() {
  auto tutti = std::make_unique<CLI::App>("Tutti: distributed arrays, all together.", "tutti");
  tutti->require_subcommand(1);
  tutti->get_formatter()->column_width(30);
  tutti->get_formatter()->label("SUBCOMMAND", "COMMAND");
  tutti->set_version_flag("--version", "tutti " TUTTI_VERSION);
  // The launcher parses its own arguments: what follows the program is not parsed here. The command exists for the
  // help.
  tutti->add_subcommand("run", "Start a program as several ranks; the same as tuttirun");
  add_doctor(*tutti);
  add_explain(*tutti);
  add_watch(*tutti);
  sim::add_command(*tutti);
  bench::add_command(*tutti);
  add_completion(*tutti);
  for (CLI::App* command : tutti->get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) command->group("Commands");
  }
  tutti->footer(launch::examples({{"tutti run -n 4 ./program", "4 ranks on this machine"},
                                  {"tutti doctor", "what is there, and what works"},
                                  {"tutti explain all_reduce -n 8 --bytes 1M", "which algorithm, why, and a picture"},
                                  {"tutti where", "the jobs that run here, and where their ranks are"},
                                  {"tutti sim all_reduce --ranks 1024", "the same plans on a simulated cluster"}}) +
                "\n\n`tutti COMMAND --help` says more, with examples.");
  return tutti;
}

int run_program(int count, char** texts) {
  if (count > 1 && std::string_view(texts[1]) == "run")
    return launch::run_main("tutti run", {texts + 2, texts + count});
  const std::unique_ptr<CLI::App> tutti = make_program();
  try {
    tutti->parse(count, texts);
  } catch (const CLI::Success& success) {
    return tutti->exit(success);  // help or version
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return refuse(*tutti, message_of(*tutti, error));
  } catch (const InvalidArgument& error) {
    return refuse(*tutti, error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", full_name(*innermost(*tutti)), error.what());
    return status_failed;
  }
  return 0;
}

}  // namespace tutti::cli
