// program.hpp: which file is executed for a rank, and with which arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

struct Program {
  std::string path;                // what execve is given
  std::vector<std::string> words;  // argv, the name first
};

// An executable as it is, looked up in PATH if its name has no slash; a Python file or module by the Python of the active
// environment: that of VIRTUAL_ENV, or the first python3 (or python) in PATH. Throws UsageError that says what is wrong with it.
Program find_program(const RunOptions& options, const Environment& environment);

// A command as execvp finds it: its path, or the name itself where it is nowhere.
std::string find_command(const std::string& name, const Environment& environment);

}  // namespace tutti::launch
