// run.hpp: runs a scenario in a simulated cluster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "breakage.hpp"
#include "history.hpp"
#include "scenario.hpp"

namespace tutti::sim {

// The same scenario gives the same history.
History run(const Scenario& scenario, Breakage breakage = Breakage::none);

}  // namespace tutti::sim
