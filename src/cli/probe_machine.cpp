// probe_machine.cpp: processor, cores and caches (hwloc), memory, and the limits that are set on them.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <fmt/format.h>

#include "cli/files.hpp"
#include "cli/probes.hpp"
#include "launch/hwloc_topology.hpp"

namespace tutti::cli {

namespace {

int count_of(const launch::HwlocTopology& topology, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(topology.get(), type));
}

std::vector<CacheFacts> caches_of(const launch::HwlocTopology& topology) {
  struct Kind {
    hwloc_obj_type_t type;
    const char* name;
  };
  constexpr Kind kinds[] = {{HWLOC_OBJ_L1CACHE, "data"},
                            {HWLOC_OBJ_L2CACHE, "unified"},
                            {HWLOC_OBJ_L3CACHE, "unified"},
                            {HWLOC_OBJ_L4CACHE, "unified"}};
  std::vector<CacheFacts> caches;
  for (const Kind& kind : kinds) {
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology.get(), kind.type, 0);
    if (first == nullptr) continue;
    caches.push_back({.level = static_cast<int>(first->attr->cache.depth),
                      .kind = kind.name,
                      .bytes = static_cast<std::int64_t>(first->attr->cache.size),
                      .count = count_of(topology, kind.type)});
  }
  return caches;
}

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

std::optional<std::int64_t> limit_of(__rlimit_resource_t resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace

MachineFacts probe_machine(const Path& root) {
  MachineFacts facts;
  utsname name{};
  if (uname(&name) == 0) {
    facts.host = name.nodename;
    facts.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  }
  facts.usable_threads = usable_threads();
  facts.cpu_quota = read_cgroup_limits(root).cpu_quota;
  const launch::HwlocTopology topology = launch::load_topology();
  if (!topology) return facts;
  facts.packages = count_of(topology, HWLOC_OBJ_PACKAGE);
  facts.numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE);
  facts.cores = count_of(topology, HWLOC_OBJ_CORE);
  facts.threads = count_of(topology, HWLOC_OBJ_PU);
  facts.caches = caches_of(topology);
  if (const hwloc_obj_t package = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, 0)) {
    const char* model = hwloc_obj_get_info_by_name(package, "CPUModel");
    if (model != nullptr) facts.processor = model;
  }
  return facts;
}

MemoryFacts probe_memory(const Path& root) {
  constexpr std::int64_t kib = 1024;
  const std::string meminfo = read_text(root / "proc/meminfo").value_or("");
  const CgroupLimits cgroup = read_cgroup_limits(root);
  return {.total = field(meminfo, "MemTotal").value_or(0) * kib,
          .available = field(meminfo, "MemAvailable").value_or(0) * kib,
          .cgroup_limit = cgroup.memory_limit,
          .cgroup_used = cgroup.memory_used,
          .locked_limit = limit_of(RLIMIT_MEMLOCK),
          .address_space_limit = limit_of(RLIMIT_AS),
          .open_files_limit = limit_of(RLIMIT_NOFILE)};
}

}  // namespace tutti::cli
