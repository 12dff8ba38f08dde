// topology.cpp: the machine's cores by hwloc, in the order in which they lie in it.
// SPDX-License-Identifier: Apache-2.0
#include <hwloc/glibc-sched.h>

#include <tutti/error.hpp>

#include "launch/cores.hpp"
#include "launch/hwloc_topology.hpp"

namespace tutti::launch {
std::vector<cpu_set_t> split_cores(int ranks) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0)
    throw Error("tuttirun cannot find out which processors it may use; leave out --bind");
  const HwlocTopology topology = load_topology();
  if (topology == nullptr) throw Error("hwloc cannot read this machine's topology; leave out --bind");
  std::vector<cpu_set_t> cores;
  const int count = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    cpu_set_t processors;
    CPU_ZERO(&processors);
    hwloc_cpuset_to_glibc_sched_affinity(topology.get(), core->cpuset, &processors, sizeof(processors));
    CPU_AND(&processors, &processors, &usable);
    if (CPU_COUNT(&processors) > 0) cores.push_back(processors);
  }
  return deal_cores(cores, ranks);
}

}  // namespace tutti::launch
