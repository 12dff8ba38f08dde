// capture.hpp: runs another program and captures its output, within a time limit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::cli {

struct Captured {
  std::string output{};   // standard output, up to 1 MiB
  std::string problem{};  // empty: it ran and exited with 0
};

/// Runs `command` (found in PATH) with standard input and error closed off. It is killed when the time is over.
Captured capture(const std::vector<std::string>& command, Duration limit);

}  // namespace tutti::cli
