// cores.hpp: the cores of this machine and each rank's share of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace tutti::launch {

// The processors this process may run on; cheap, unlike asking for the topology.
int usable_processors();

// Each rank's processors if every rank gets cores of its own: as equal and as near to each other as the cores allow, with
// all hardware threads of a core. UsageError if there are more ranks than cores. hwloc looks at the machine.
std::vector<cpu_set_t> split_cores(int ranks);

// The same for cores that are given, in the order in which they lie in the machine.
std::vector<cpu_set_t> deal_cores(const std::vector<cpu_set_t>& cores, int ranks);

// "0-3,8".
std::string describe(const cpu_set_t& processors);

}  // namespace tutti::launch
