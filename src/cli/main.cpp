// main.cpp: `tutti`: one program, one command per question.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

// Each layer of programs adds its commands here: `void add_command(CLI::App& tutti)`.
int main(int count, char** texts) {
  CLI::App tutti("Tutti: distributed arrays, all together.", "tutti");
  tutti.require_subcommand(1);
  CLI11_PARSE(tutti, count, texts);
  return 0;
}
