// dry_run.hpp: prints what would be started.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <string>
#include <vector>

#include "launch/program.hpp"
#include "launch/rank_environment.hpp"

namespace tutti::launch {

// The program, what is set for all ranks, and one line per rank. Secrets are not shown.
std::string describe_start(const Program& program, const Placement& placement, const Variables& common,
                           const std::vector<cpu_set_t>& processors);

// A word, quoted for a shell.
std::string quoted(const std::string& word);

}  // namespace tutti::launch
