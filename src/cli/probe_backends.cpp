// probe_backends.cpp: the table of backends, with what each of them needs; and all probes together.
// SPDX-License-Identifier: Apache-2.0
#include "cli/probes.hpp"

namespace tutti::cli {

namespace {

BackendFacts native(const Facts& others) {
  if (!others.network.problem.empty()) return {.detail = "no address to bind to: see the network"};
  return {.available = true, .detail = "plans over TCP: every verb, every dtype"};
}

BackendFacts shared_memory(const Facts& others) {
  if (!others.shared_memory.memfd_problem.empty()) return {.detail = others.shared_memory.memfd_problem};
  return {.available = true,
          .detail = others.cross_memory.problem.empty()
                        ? "memory that the ranks of a host share, and one copy for large arrays"
                        : "memory that the ranks of a host share; no peer memory, so two copies"};
}

BackendFacts not_built(const Facts&) { return {.detail = "not part of this build"}; }

constexpr BackendRow rows[] = {
    {"native", native},  {"shm", shared_memory}, {"mpi", not_built},
    {"nccl", not_built}, {"cuda", not_built},    {"ucx", not_built},
};

}  // namespace

std::vector<BackendFacts> probe_backends(const Facts& others) {
  std::vector<BackendFacts> all;
  for (const BackendRow& row : rows) {
    all.push_back(row.probe(others));
    all.back().name = row.name;
  }
  return all;
}

Facts probe_all(const Environment& environment) {
  const Path root = "/";
  Facts facts{.build = probe_build(),
              .machine = probe_machine(root),
              .memory = probe_memory(root),
              .shared_memory = probe_shared_memory(root),
              .cross_memory = probe_cross_memory(root),
              .clock = probe_clock(root),
              .network = probe_network(environment),
              .python = probe_python(environment),
              .launcher = probe_launcher(environment),
              .table = probe_table(environment)};
  facts.backends = probe_backends(facts);
  return facts;
}

}  // namespace tutti::cli
