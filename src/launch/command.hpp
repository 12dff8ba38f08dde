// command.hpp: what the commands of `tutti` share.
// SPDX-License-Identifier: Apache-2.0
//
// A command is a function `void add_command(CLI::App& tutti)` in the namespace of its layer, declared in its
// `command.hpp`. It follows these rules:
//  1. It adds a subcommand: a description of one line, options whose descriptions say the unit and the default, and
//     `footer(examples({…}))`. Option names are written with a dash; `--json` means the same everywhere.
//  2. It runs in the subcommand's `callback`, when everything is parsed. Its variables live in a shared_ptr that the
//     callback holds, because add_command returns before it runs.
//  3. Results go to standard output; whatever is not the result (progress, warnings) goes to standard error.
//  4. Errors are thrown. main prints "tutti: MESSAGE" and exits with 2 for the caller's mistakes (InvalidArgument,
//     CLI::ParseError, to which it adds the nearest option or command), and with 1 for others.
//     To exit with another status and without a message: `throw CLI::RuntimeError(status)`.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tutti::launch {

struct Example {
  std::string_view command;  // as people type it
  std::string_view meaning;
};

/// For CLI::App::footer: the examples below each other, meanings aligned.
std::string examples(std::initializer_list<Example> list);

}  // namespace tutti::launch
