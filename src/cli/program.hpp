// program.hpp: the program `tutti`: all commands under one name, and the handling of errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace CLI {
class App;
}

namespace tutti::cli {

/// All commands, ready to parse.
std::unique_ptr<CLI::App> make_program();

/// From the arguments to the exit status: 0; 1 for failures; 2 for the caller's mistakes.
int run_program(int count, char** texts);

}  // namespace tutti::cli
