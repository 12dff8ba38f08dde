// probe_backends.cpp: the table of backends, with what each of them needs; and all probes together.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/probes.hpp"
#include "cuda/driver.hpp"
#include "cuda/kernels.hpp"
#include "cuda/nccl.hpp"
#include "link/ucx.hpp"
#include "mpi/library.hpp"

namespace tutti::cli {

namespace {

BackendFacts native(const Facts& others, const Environment&) {
  if (!others.network.problem.empty()) return {.detail = "no address to bind to: see the network"};
  return {.available = true, .detail = "plans over TCP: every verb, every dtype"};
}

BackendFacts shared_memory(const Facts& others, const Environment&) {
  if (!others.shared_memory.memfd_problem.empty()) return {.detail = others.shared_memory.memfd_problem};
  return {.available = true,
          .detail = others.cross_memory.problem.empty()
                        ? "memory that the ranks of a host share, and one copy for large arrays"
                        : "memory that the ranks of a host share; no peer memory, so two copies"};
}

/// Which MPI would be used, and what is the matter with the others. Opens libraries, and calls nothing that needs MPI_Init.
BackendFacts message_passing(const Facts&, const Environment& environment) {
  std::string others;
  const mpi::Found found = mpi::find_library(environment);
  for (const mpi::Attempt& one : mpi::survey(environment)) {
    if (found.library && one.name == found.library->name) continue;
    others += fmt::format("; {}: {}", one.name, one.problem.empty() ? "is there, too (TUTTI_MPI)" : one.problem);
  }
  if (!found.library) return {.detail = fmt::format("{}{}", mpi::describe_problems(found), others)};
  const mpi::Library& library = *found.library;
  return {.available = true,
          .detail = fmt::format("{} (MPI {}.{}, {}): {}{}", library.version, library.standard_major,
                                library.standard_minor, library.file, found.reason, others)};
}

/// The native backend over UCX.
BackendFacts through_ucx(const Facts&, const Environment&) {
  const link::UcxFindings found = link::find_ucx();
  if (!found.problem.empty()) return {.detail = found.problem};
  const std::string chosen = found.fabrics.empty()
                                 ? "no fabric with remote memory access, so TUTTI_LINK=ucx has to ask for it"
                                 : fmt::format("used between hosts, because of {}", fmt::join(found.fabrics, ", "));
  return {.available = true,
          .detail =
              fmt::format("UCX {} ({}): {}; {}", found.version, found.file, fmt::join(found.transports, ", "), chosen)};
}

/// Arrays on GPUs. Opens NVIDIA's driver, and makes no context.
BackendFacts on_gpus(const Facts&, const Environment&) {
  const cuda::FoundDriver& found = cuda::find_driver();
  const std::string_view kernels =
      cuda::kernel_image() != nullptr
          ? "kernels for them are part of this build"
          : "this build has no kernels for them (no nvcc when it was built), so calls go by "
            "way of the host, and arrays have to be contiguous";
  if (found.driver == nullptr) return {.detail = fmt::format("{}; {}", found.problem, kernels)};
  return {.available = true,
          .detail = fmt::format("{} GPU{}, CUDA {}.{} ({}); {}", found.device_count, found.device_count == 1 ? "" : "s",
                                found.version / 1000, found.version % 1000 / 10, found.file, kernels)};
}

/// Opens NCCL, and connects to nobody.
BackendFacts through_nccl(const Facts&, const Environment& environment) {
  const nccl::Found found = nccl::open(environment);
  if (found.functions == nullptr) return {.detail = found.problem};
  const std::string library = fmt::format("NCCL {} ({})", nccl::version_text(found.version), found.file);
  if (const auto& driver = cuda::find_driver(); driver.driver == nullptr)
    return {.detail = fmt::format("{} is there, and no GPU that it could use: {}", library, driver.problem)};
  return {.available = true, .detail = fmt::format("{}: used where every rank has a GPU of its own", library)};
}

constexpr BackendRow rows[] = {
    {"native", native},       {"shm", shared_memory}, {"ucx", through_ucx},
    {"mpi", message_passing}, {"nccl", through_nccl}, {"cuda", on_gpus},
};

}  // namespace

std::vector<BackendFacts> probe_backends(const Facts& others, const Environment& environment) {
  std::vector<BackendFacts> all;
  for (const BackendRow& row : rows) {
    all.push_back(row.probe(others, environment));
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
  facts.backends = probe_backends(facts, environment);
  return facts;
}

}  // namespace tutti::cli
