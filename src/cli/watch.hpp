// watch.hpp: the commands that look at jobs: where, top, trace, report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tutti::cli {

void add_watch(CLI::App& tutti);

/// Draws `tutti top` until q is typed, the job is over, or (times > 0) so often. Where the output is no terminal, the pages come below
/// each other.
struct TopOptions {
  std::string job{};
  double seconds = 1;
  int times = 0;
};
void run_top(const TopOptions& options);

}  // namespace tutti::cli
