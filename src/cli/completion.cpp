// completion.cpp: `tutti completion`, from the help of the programs.
// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.hpp"

#include <algorithm>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tutti/error.hpp>

#include "launch/command.hpp"
#include "launch/options.hpp"
#include "plan/catalog.hpp"

namespace tutti::cli {

namespace {

// What can be given to an option, or to a place, of this name.
std::vector<std::string> values_for(std::string_view name) {
  std::vector<std::string> values;
  if (name == "verb" || name == "VERB") {
    for (int i = 0; i < verb_count; ++i) {
      if (!catalog(static_cast<Verb>(i)).empty()) values.emplace_back(name_of(static_cast<Verb>(i)));
    }
  } else if (name == "algorithm") {
    for (int i = 1; i <= static_cast<int>(Algorithm::hierarchical); ++i) {
      values.emplace_back(name_of(static_cast<Algorithm>(i)));
    }
  } else if (name == "dtype") {
    for (int i = 0; i < dtype_count; ++i) values.emplace_back(name_of(static_cast<DType>(i)));
  } else if (name == "shell") {
    values = {"bash", "zsh", "fish"};
  } else if (name == "bind") {
    values = {"core", "none"};
  }
  return values;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

CompletionCommand describe_command(const CLI::App& app) {
  CompletionCommand command{.name = app.get_name(), .description = first_line(app.get_description())};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.words = values_for(option->get_name());
      continue;
    }
    CompletionOption& described = command.options.emplace_back();
    described.description = first_line(option->get_description());
    described.takes_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_snames()) described.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) {
      described.names.push_back("--" + name);
      if (described.takes_value) described.values = values_for(name);
    }
  }
  return command;
}

// "  -n,--ranks,--nproc-per-node N   How many" → names, whether a value follows, description.
bool read_option_line(std::string_view line, CompletionOption& option) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || begin == 0 || line[begin] != '-') return false;
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  std::string_view rest = line.substr(begin, end - begin);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    option.names.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  const std::size_t next = line.find_first_not_of(' ', end);
  option.takes_value = next == end + 1;  // a value stands one blank behind the names, a description further off
  std::size_t text = next;
  if (option.takes_value) text = line.find_first_not_of(' ', std::min(line.find(' ', next), line.size()));
  if (text != std::string_view::npos) option.description = std::string(line.substr(text));
  for (const std::string& name : option.names) {
    if (option.takes_value && name.starts_with("--") && option.values.empty())
      option.values = values_for(name.substr(2));
  }
  return true;
}

Shell shell_from_name(const std::string& name) {
  if (name == "bash") return Shell::bash;
  if (name == "zsh") return Shell::zsh;
  if (name == "fish") return Shell::fish;
  throw InvalidArgument(fmt::format("there is no completion for {}; the shells are bash, zsh and fish", name));
}

}  // namespace

CompletionProgram describe(const CLI::App& app) {
  CompletionProgram program{.itself = describe_command(app)};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    program.commands.push_back(describe_command(*command));
    program.itself.words.push_back(command->get_name());
  }
  return program;
}

CompletionCommand describe_help(std::string_view name, std::string_view help) {
  CompletionCommand command{.name = std::string(name)};
  std::istringstream lines{std::string(help)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Examples")) break;
    if (CompletionOption option; read_option_line(line, option)) command.options.push_back(std::move(option));
  }
  return command;
}

void add_completion(CLI::App& tutti) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = tutti.add_subcommand("completion", "Print a script that completes words for your shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("SHELL");
  command->footer(launch::examples({{"source <(tutti completion bash)", "in ~/.bashrc; completes tutti and tuttirun"},
                                    {"source <(tutti completion zsh)", "in ~/.zshrc, after compinit"},
                                    {"tutti completion fish > ~/.config/fish/completions/tutti.fish", "once"}}));
  const CLI::App* root = &tutti;
  command->callback([shell, root] {
    CompletionProgram program = describe(*root);
    const std::vector<std::string> ask{"--help"};
    const CompletionCommand run = describe_help("run", launch::parse_options("tuttirun", ask).text);
    for (CompletionCommand& known : program.commands) {
      if (known.name == run.name) known.options = run.options;
    }
    CompletionCommand tuttirun = run;
    tuttirun.name = "tuttirun";
    fmt::print("{}", completion_script(shell_from_name(*shell), {program, {.itself = std::move(tuttirun)}}));
  });
}

}  // namespace tutti::cli
