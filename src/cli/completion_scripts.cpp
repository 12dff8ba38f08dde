// completion_scripts.cpp: completion scripts for three shells.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.hpp"

namespace tutti::cli {

namespace {

// Within single quotes, for all three shells.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> option_names(const CompletionCommand& command) {
  std::vector<std::string> names;
  for (const CompletionOption& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// bash: a case per command, and within it one per option that takes a value.
std::string bash_command(const CompletionCommand& command) {
  std::string text = "      case $previous in\n";
  for (const CompletionOption& option : command.options) {
    if (!option.takes_value) continue;
    text += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"),
                        option.values.empty() ? std::string("COMPREPLY=($(compgen -f -- \"$word\"))")
                                              : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))",
                                                            fmt::join(option.values, " ")));
  }
  text += "      esac\n";
  text += fmt::format("      if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n",
                      fmt::join(option_names(command), " "));
  text += command.words.empty() ? std::string("      else COMPREPLY=($(compgen -f -- \"$word\")); fi\n")
                                : fmt::format("      else COMPREPLY=($(compgen -W '{}' -- \"$word\")); fi\n",
                                              fmt::join(command.words, " "));
  return text;
}

std::string bash_program(const CompletionProgram& program) {
  const std::string& name = program.itself.name;
  std::string text = fmt::format(
      "_{}() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=\n"
      "  COMPREPLY=()\n  ((COMP_CWORD > 1)) && command=${{COMP_WORDS[1]}}\n  case $command in\n",
      name);
  for (const CompletionCommand& command : program.commands) {
    text += fmt::format("    {})\n{}      ;;\n", command.name, bash_command(command));
  }
  text += fmt::format("    *)\n{}      ;;\n  esac\n}}\ncomplete -o filenames -F _{} {}\n", bash_command(program.itself),
                      name, name);
  return text;
}

// zsh: _arguments does the work. Brackets and colons have a meaning in its words.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const std::vector<std::string>& values) {
  return values.empty() ? "_files" : fmt::format("({})", fmt::join(values, " "));
}

std::string zsh_arguments(const CompletionCommand& command, const char* indent) {
  std::string text = fmt::format("{}_arguments -s", indent);
  for (const CompletionOption& option : command.options) {
    for (const std::string& name : option.names) {
      const std::string value = option.takes_value ? ":value:" + zsh_action(option.values) : "";
      text += fmt::format(" \\\n{}  {}", indent,
                          in_quotes(fmt::format("*{}[{}]{}", name, zsh_text(option.description), value)));
    }
  }
  return text + fmt::format(" \\\n{}  {}\n", indent, in_quotes("*:argument:" + zsh_action(command.words)));
}

std::string zsh_program(const CompletionProgram& program) {
  const std::string& name = program.itself.name;
  std::string text = fmt::format("_{}() {{\n", name);
  if (!program.commands.empty()) {
    text += "  if ((CURRENT == 2)); then\n    local -a commands=(\n";
    for (const CompletionCommand& command : program.commands) {
      text += fmt::format("      {}\n", in_quotes(command.name + ":" + zsh_text(command.description)));
    }
    text += "    )\n    _describe command commands\n    return\n  fi\n";
    text += "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
    for (const CompletionCommand& command : program.commands) {
      text += fmt::format("    {})\n{}      ;;\n", command.name, zsh_arguments(command, "      "));
    }
    text += "  esac\n";
  } else {
    text += zsh_arguments(program.itself, "  ");
  }
  return text + fmt::format("}}\ncompdef _{} {}\n", name, name);
}

std::string fish_line(std::string_view program, const std::string& condition, const CompletionOption& option) {
  std::string text = fmt::format("complete -c {}", program);
  if (!condition.empty()) text += " -n " + in_quotes(condition);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.takes_value)
    text += option.values.empty() ? " -r" : fmt::format(" -x -a '{}'", fmt::join(option.values, " "));
  if (!option.description.empty()) text += " -d " + in_quotes(option.description);
  return text + '\n';
}

std::string fish_program(const CompletionProgram& program) {
  const std::string& name = program.itself.name;
  std::string text;
  const std::string first = program.commands.empty() ? "" : "__fish_use_subcommand";
  for (const CompletionOption& option : program.itself.options) text += fish_line(name, first, option);
  for (const CompletionCommand& command : program.commands) {
    text += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d {}\n", name, command.name,
                        in_quotes(command.description));
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    for (const CompletionOption& option : command.options) text += fish_line(name, condition, option);
    if (command.words.empty()) continue;
    text += fmt::format("complete -c {} -f -n {} -a '{}'\n", name, in_quotes(condition), fmt::join(command.words, " "));
  }
  return text;
}

}  // namespace

std::string completion_script(Shell shell, const std::vector<CompletionProgram>& programs) {
  std::string text = "# Completion of tutti and tuttirun, written by `tutti completion`.\n";
  for (const CompletionProgram& program : programs) {
    switch (shell) {
      case Shell::bash: text += bash_program(program); break;
      case Shell::zsh: text += zsh_program(program); break;
      case Shell::fish: text += fish_program(program); break;
    }
  }
  return text;
}

}  // namespace tutti::cli
