// topology.cpp: the machine's cores by hwloc, in the order in which they lie in it.
// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>
#include <hwloc/glibc-sched.h>

#include <memory>

#include <tutti/error.hpp>

#include "launch/cores.hpp"

namespace tutti::launch {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

Topology load() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0)
    throw Error("tuttirun cannot ask hwloc about this machine; leave out --bind");
  Topology loaded(topology);
  if (hwloc_topology_load(topology) != 0) throw Error("hwloc cannot read this machine's topology; leave out --bind");
  return loaded;
}

}  // namespace

std::vector<cpu_set_t> split_cores(int ranks) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0)
    throw Error("tuttirun cannot find out which processors it may use; leave out --bind");
  const Topology topology = load();
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
