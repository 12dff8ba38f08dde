// facts.hpp: what `tutti doctor` finds out, as plain data. Probes fill it (probes.hpp); report.hpp prints it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::cli {

struct BuildFacts {
  std::string version;
  std::string type;  // "Release"
  std::string compiler;
  std::string flags;
  std::string vector_target;                // the one that the kernels use on this processor
  std::vector<std::string> vector_targets;  // those that the kernels were compiled for, the best first
};

struct CacheFacts {
  int level = 1;
  std::string kind;  // "data", "instruction", "unified"
  std::int64_t bytes = 0;
  int count = 0;
};

struct MachineFacts {
  std::string host, system, processor;
  int packages = 0, numa_nodes = 0, cores = 0, threads = 0;
  int usable_threads = 0;             // by this process's affinity
  std::optional<double> cpu_quota{};  // cgroup: threads' worth of time
  std::vector<CacheFacts> caches{};
};

/// Bytes; nothing where there is no limit.
struct MemoryFacts {
  std::int64_t total = 0, available = 0;
  std::optional<std::int64_t> cgroup_limit{}, cgroup_used{};
  std::optional<std::int64_t> locked_limit{};         // RLIMIT_MEMLOCK
  std::optional<std::int64_t> address_space_limit{};  // RLIMIT_AS
  std::optional<std::int64_t> open_files_limit{};     // RLIMIT_NOFILE, a count
};

struct SharedMemoryFacts {
  std::string memfd_problem;  // empty: a memfd was made, mapped and sealed
  std::string shm_problem;    // empty: /dev/shm is there
  std::int64_t shm_total = 0, shm_available = 0;
};

struct CrossMemoryFacts {
  std::string problem;                // empty: process_vm_readv read a child's memory
  std::optional<int> ptrace_scope{};  // Yama's, where the kernel has it
};

struct ClockFacts {
  std::string source;                 // of the kernel: "tsc"
  std::string others;                 // what else there is
  std::int64_t resolution_ns = 0;     // of CLOCK_MONOTONIC
  std::int64_t smallest_step_ns = 0;  // seen between two readings that differ
};

struct InterfaceFacts {
  std::string name, address;
  unsigned prefix_bits = 0;
  bool up = false, loopback = false, internal = false;  // internal: joins containers of this host
};

struct NetworkFacts {
  std::vector<InterfaceFacts> interfaces{};
  std::string used_between_hosts;  // address
  std::string used_on_one_host;
  std::string wish;              // TUTTI_INTERFACE
  std::string problem;           // why nothing can be chosen
  std::string identity;          // ranks that show the same one reach each other over loopback
  std::string loopback_problem;  // why not even they do
};

struct BackendFacts {
  std::string name;
  bool available = false;
  std::string detail;  // what it is, or why not
};

struct FrameworkFacts {
  std::string name;
  std::string version;  // empty: not there
  std::string reason;
};

struct PythonFacts {
  std::string path, version, problem;
  std::vector<FrameworkFacts> frameworks{};
};

struct LauncherFacts {
  std::string launcher, meeting, secret;
  int rank = 0, size = 1;
  std::string problem;  // what init would throw
};

struct TableFacts {
  std::string path;  // TUTTI_TABLE; empty: the built-in cost model
  int rows = 0;
  std::vector<std::string> limits{};  // of shared memory, where they are not the built-in ones: "chunk_bytes 65536"
  std::string problem;
};

struct Facts {
  BuildFacts build{};
  MachineFacts machine{};
  MemoryFacts memory{};
  SharedMemoryFacts shared_memory{};
  CrossMemoryFacts cross_memory{};
  ClockFacts clock{};
  NetworkFacts network{};
  std::vector<BackendFacts> backends{};
  PythonFacts python{};
  LauncherFacts launcher{};
  TableFacts table{};
};

}  // namespace tutti::cli
