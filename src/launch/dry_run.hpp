// dry_run.hpp: what would be started, for a person.
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

// A word as a shell would want it.
std::string quoted(const std::string& word);

}  // namespace tutti::launch
