// detect.cpp: one short detector per launcher, and the order in which they are asked.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/detect.hpp"

#include <fmt/format.h>

#include <array>

#include <tutti/error.hpp>

#include "base/hash.hpp"
#include "rendezvous/nodelist.hpp"

namespace tutti::rendezvous {
namespace {

// Inner launchers come before those they may run in (torchrun under srun, mpirun in a Slurm allocation). Variables that
// a user set by hand come before Slurm, whose variables exist in every shell of an allocation.
constexpr std::array detectors = {
    Detector{"tuttirun", detect_tuttirun},     Detector{"torchrun", detect_torchrun},
    Detector{"Open MPI", detect_open_mpi},     Detector{"MPICH or another PMI launcher", detect_pmi},
    Detector{"by hand", detect_by_hand},       Detector{"Slurm", detect_slurm},
    Detector{"Kubernetes", detect_kubernetes}, Detector{"by hand, incomplete", detect_incomplete},
    Detector{"alone", detect_alone},
};

constexpr int ranks_max = 1 << 24;

std::optional<int> number(const Environment& environment, std::string_view name, int lowest = 0) {
  const auto value = environment.integer(name, lowest, ranks_max);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

int required(const Environment& environment, std::string_view launcher, std::string_view name, int lowest = 0) {
  if (const auto value = number(environment, name, lowest)) return *value;
  throw InvalidArgument(
      fmt::format("{} started this process, but {} is not set; set it, or unset the other variables "
                  "to run alone",
                  launcher, name));
}

struct RankAndSize {
  int rank, size;
};

// The two variables that everything depends on, checked against each other.
RankAndSize read_world(const Environment& environment, std::string_view launcher, std::string_view rank_name,
                       std::string_view size_name) {
  const int size = required(environment, launcher, size_name, 1);
  const int rank = required(environment, launcher, rank_name);
  if (rank >= size) {
    throw InvalidArgument(
        fmt::format("{}={} is outside the world of {}={}: ranks run from 0 to {}; give every process "
                    "a rank of its own in that range",
                    rank_name, rank, size_name, size, size - 1));
  }
  return {rank, size};
}

wire::HostPort read_master(const Environment& environment, std::string_view launcher) {
  const std::string host = environment.get("MASTER_ADDR").value_or("");
  if (host.empty()) {
    throw InvalidArgument(
        fmt::format("{} gave RANK and WORLD_SIZE, but MASTER_ADDR is not set; set it to the host name "
                    "or address of rank 0 (127.0.0.1 on one machine), and MASTER_PORT to a free port",
                    launcher));
  }
  const auto port = environment.integer("MASTER_PORT", 1, 65535).value_or(default_master_port);
  return {.host = host, .port = static_cast<std::uint16_t>(port)};
}

bool set(const Environment& environment, std::string_view name) { return !environment.get(name).value_or("").empty(); }

bool offers_pmix(const Environment& environment) {
  return set(environment, "PMIX_NAMESPACE") && set(environment, "PMIX_RANK");
}

void read_slurm_place(const Environment& environment, Detected& detected) {
  detected.local_rank = number(environment, "SLURM_LOCALID");
  detected.node_rank = number(environment, "SLURM_NODEID");
  detected.node_count = number(environment, "SLURM_STEP_NUM_NODES", 1);
  const auto tasks = environment.get("SLURM_STEP_TASKS_PER_NODE");
  if (tasks && detected.node_rank) detected.local_size = tasks_on_node(*tasks, *detected.node_rank);
}

}  // namespace

std::span<const Detector> all_detectors() { return detectors; }

Detected detect(const Environment& environment) {
  for (const Detector& detector : detectors) {
    if (auto detected = detector.detect(environment)) return *std::move(detected);
  }
  return {.launcher = "alone"};
}

std::optional<Detected> detect_tuttirun(const Environment& environment) {
  const auto store = environment.get("TUTTI_STORE");
  if (!store) return std::nullopt;
  const auto [rank, size] = read_world(environment, "tuttirun", "RANK", "WORLD_SIZE");
  return Detected{.launcher = "tuttirun",
                  .rank = rank,
                  .size = size,
                  .local_rank = number(environment, "LOCAL_RANK"),
                  .local_size = number(environment, "LOCAL_WORLD_SIZE", 1),
                  .node_rank = number(environment, set(environment, "GROUP_RANK") ? "GROUP_RANK" : "NODE_RANK"),
                  .node_count = number(environment, "GROUP_WORLD_SIZE", 1),
                  .meeting = LauncherStore{wire::HostPort::parse(*store)},
                  .job = environment.get("TUTTI_JOB").value_or("")};
}

// torchrun's agent listens on MASTER_PORT itself, so that port is not free. Ranks of one machine meet through a file,
// those of several machines through the agent's store.
std::optional<Detected> detect_torchrun(const Environment& environment) {
  const auto run_id = environment.get("TORCHELASTIC_RUN_ID");
  if (!run_id) return std::nullopt;
  const auto [rank, size] = read_world(environment, "torchrun", "RANK", "WORLD_SIZE");
  Detected detected{.launcher = "torchrun",
                    .rank = rank,
                    .size = size,
                    .local_rank = number(environment, "LOCAL_RANK"),
                    .local_size = number(environment, "LOCAL_WORLD_SIZE", 1),
                    .node_rank = number(environment, "GROUP_RANK"),
                    .node_count = number(environment, "GROUP_WORLD_SIZE", 1)};
  // The run id is not unique: without --rdzv-id it is "none" for every job. A restarted job must not meet its earlier
  // attempt.
  const wire::HostPort master = read_master(environment, "torchrun");
  detected.job =
      fmt::format("{}/{}/{}", *run_id, master.text(), environment.get("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  if (detected.on_one_node()) {
    detected.meeting = RecordInPrivateFile{fmt::format("torchrun-{:016x}", Hash().add(detected.job).value())};
  } else if (environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    detected.meeting = RecordInAgentStore{master};
  } else {
    detected.meeting = FixedAddress{master};  // the agent left the port to rank 0
  }
  return detected;
}

std::optional<Detected> detect_open_mpi(const Environment& environment) {
  if (!environment.has("OMPI_COMM_WORLD_SIZE")) return std::nullopt;
  const auto [rank, size] = read_world(environment, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  Detected detected{.launcher = "Open MPI",
                    .rank = rank,
                    .size = size,
                    .local_rank = number(environment, "OMPI_COMM_WORLD_LOCAL_RANK"),
                    .local_size = number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 1),
                    .meeting = RecordInPmix{},
                    .job = environment.get("PMIX_NAMESPACE").value_or("")};
  // MPI_Init of Open MPI 5 fails in a process that has called PMIx_Init, and the program may call it later.
  if (environment.has("PRTE_LAUNCHED") && detected.on_one_node()) {
    const std::string server = environment.get("PMIX_SERVER_URI2").value_or("");
    detected.meeting = RecordInPrivateFile{fmt::format("prte-{:016x}", Hash().add(detected.job).add(server).value())};
  }
  return detected;
}

// MPICH's hydra, Intel MPI, and srun --mpi=pmi2: all speak PMI-1 over an inherited descriptor.
std::optional<Detected> detect_pmi(const Environment& environment) {
  const auto fd = environment.integer("PMI_FD", 0, 1 << 20);
  if (!fd) return std::nullopt;
  const bool slurm = environment.has("SLURM_STEP_ID") && environment.get("PMI_RANK") == environment.get("SLURM_PROCID");
  const std::string launcher = slurm ? "Slurm (PMI)" : "MPICH";
  const auto [rank, size] = read_world(environment, launcher, "PMI_RANK", "PMI_SIZE");
  Detected detected{.launcher = launcher,
                    .rank = rank,
                    .size = size,
                    .local_rank = number(environment, "MPI_LOCALRANKID"),
                    .local_size = number(environment, "MPI_LOCALNRANKS", 1)};
  if (slurm) read_slurm_place(environment, detected);
  detected.meeting = RecordInPmi{static_cast<int>(*fd)};
  return detected;
}

Detected read_plain_environment(const Environment& environment) {
  const auto [rank, size] = read_world(environment, "env://", "RANK", "WORLD_SIZE");
  Detected detected{.launcher = "by hand",
                    .rank = rank,
                    .size = size,
                    .local_rank = number(environment, "LOCAL_RANK"),
                    .local_size = number(environment, "LOCAL_WORLD_SIZE", 1),
                    .node_rank = number(environment, "NODE_RANK"),
                    .job = environment.get("TUTTI_JOB").value_or("")};
  if (size > 1) detected.meeting = FixedAddress{read_master(environment, "env://")};
  return detected;
}

std::optional<Detected> detect_by_hand(const Environment& environment) {
  if (!set(environment, "RANK") || !set(environment, "WORLD_SIZE")) return std::nullopt;
  return read_plain_environment(environment);
}

// Only variables that srun sets for a step: in a batch script or an allocation's shell SLURM_NTASKS describes tasks
// that were not started.
std::optional<Detected> detect_slurm(const Environment& environment) {
  if (!set(environment, "SLURM_STEP_ID") || !set(environment, "SLURM_STEP_NUM_TASKS")) return std::nullopt;
  const auto [rank, size] = read_world(environment, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  Detected detected{.launcher = "Slurm", .rank = rank, .size = size};
  read_slurm_place(environment, detected);
  const std::string job = environment.get("SLURM_JOB_ID").value_or("0");
  const std::string step = *environment.get("SLURM_STEP_ID");
  detected.job = fmt::format("{}/{}.{}", environment.get("SLURM_CLUSTER_NAME").value_or("cluster"), job, step);
  if (offers_pmix(environment)) {
    detected.launcher = "Slurm (PMIx)";
    detected.meeting = RecordInPmix{};
  } else if (detected.on_one_node()) {
    detected.meeting = RecordInPrivateFile{fmt::format("slurm-{}-{}", job, step)};
  } else {
    const auto nodes = expand_nodelist(environment.get("SLURM_STEP_NODELIST").value_or(""));
    // 61 windows of 16 ports below the range the kernel hands out itself.
    const auto window = Hash().add(detected.job).value() % 61;
    detected.meeting =
        PortWindow{.host = nodes.front(), .first_port = static_cast<std::uint16_t>(31000 + 16 * window), .ports = 16};
  }
  return detected;
}

// Pods of an indexed Job, or of a JobSet of one: Kubernetes numbers them, and the manifest says how many there are.
std::optional<Detected> detect_kubernetes(const Environment& environment) {
  if (!set(environment, "JOB_COMPLETION_INDEX") || !set(environment, "WORLD_SIZE") || set(environment, "RANK"))
    return std::nullopt;
  const auto [rank, size] = read_world(environment, "Kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE");
  Detected detected{.launcher = "Kubernetes", .rank = rank, .size = size};
  if (size > 1) detected.meeting = FixedAddress{read_master(environment, "Kubernetes")};
  return detected;
}

// Half of what env:// needs: the user meant to start several ranks, and running alone would hide the mistake.
std::optional<Detected> detect_incomplete(const Environment& environment) {
  if (!set(environment, "RANK") && !set(environment, "WORLD_SIZE")) return std::nullopt;
  return read_plain_environment(environment);
}

std::optional<Detected> detect_alone(const Environment&) { return Detected{.launcher = "alone"}; }

}  // namespace tutti::rendezvous
