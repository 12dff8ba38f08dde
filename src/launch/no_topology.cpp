// no_topology.cpp: a build without hwloc cannot bind, and says so.
// SPDX-License-Identifier: Apache-2.0
#include "launch/cores.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

std::vector<cpu_set_t> split_cores(int) {
  throw UsageError("--bind core: this tuttirun was built without hwloc; leave out --bind");
}

}  // namespace tutti::launch
