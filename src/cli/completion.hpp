// completion.hpp: shell completion, generated from the help of the programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tutti::cli {

struct CompletionOption {
  std::vector<std::string> names{};  // "-n", "--ranks"
  std::string description{};
  bool takes_value = false;
  std::vector<std::string> values{};  // where they are known; otherwise files are offered
};

struct CompletionCommand {
  std::string name{}, description{};
  std::vector<CompletionOption> options{};
  std::vector<std::string> words{};  // what may stand there by itself; empty: files
};

/// A program is a command whose words are commands.
struct CompletionProgram {
  CompletionCommand itself{};
  std::vector<CompletionCommand> commands{};
};

/// From the app, without hidden commands.
CompletionProgram describe(const CLI::App& app);
/// From a help page that CLI11 wrote.
CompletionCommand describe_help(std::string_view name, std::string_view help);

enum class Shell { bash, zsh, fish };
/// A script for the programs, to be read by that shell.
std::string completion_script(Shell shell, const std::vector<CompletionProgram>& programs);

/// `tutti completion`.
void add_completion(CLI::App& tutti);

}  // namespace tutti::cli
