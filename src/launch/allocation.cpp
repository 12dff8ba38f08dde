// allocation.cpp: one short function per scheduler.
// SPDX-License-Identifier: Apache-2.0
#include "launch/allocation.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include <tutti/error.hpp>

#include "launch/remote_shell.hpp"
#include "rendezvous/nodelist.hpp"

namespace tutti::launch {
namespace {

constexpr int nodes_max = 16384;

std::string text_of(const Environment& environment, std::string_view name) {
  return environment.get(name).value_or("");
}

// The first of some variables that is set, and its name.
struct Variable {
  std::string name = {}, value = {};
};

template <std::size_t Count>
std::optional<Variable> first_set(const Environment& environment, const std::array<std::string_view, Count>& names) {
  for (const std::string_view name : names) {
    if (std::string value = text_of(environment, name); !value.empty())
      return Variable{.name = std::string(name), .value = std::move(value)};
  }
  return std::nullopt;
}

int whole_number(const Variable& variable, int lowest, int highest) {
  const auto value = parse_integer(variable.value);
  if (!value || *value < lowest || *value > highest)
    throw UsageError(fmt::format("{}={} is no number from {} to {}; --standalone leaves it out of account",
                                 variable.name, variable.value, lowest, highest));
  return static_cast<int>(*value);
}

// srun starts the agents: it needs no key, and Slurm accounts for what they do. Unbuffered, because it passes on whole lines otherwise,
// and frames have none.
std::string apply_slurm(RunOptions& options, const Environment& environment) {
  const auto nodes = first_set(environment, std::array<std::string_view, 2>{"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const bool is_step = environment.has("SLURM_STEP_ID") && text_of(environment, "SLURM_STEP_NUM_TASKS") != "1";
  if (!nodes || text_of(environment, "SLURM_JOB_ID").empty() || is_step) return "";
  try {
    const std::vector<std::string> names = rendezvous::expand_nodelist(nodes->value);
    if (names.size() == 1) return "";
    const auto tasks =
        first_set(environment, std::array<std::string_view, 2>{"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"});
    for (int node = 0; const std::string& name : names) {
      const int slots = tasks && options.ranks == 0 ? rendezvous::tasks_on_node(tasks->value, node++) : options.ranks;
      options.hosts.push_back({.name = name, .slots = slots});
    }
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("the Slurm allocation cannot be read: {}; list the hosts with -H", error.what()));
  }
  if (!options.has_shell)
    options.shell = "srun --nodes=1 --ntasks=1 --overlap --mpi=none --unbuffered --quit-on-interrupt";
  return fmt::format("Slurm job {}: {} nodes", text_of(environment, "SLURM_JOB_ID"), options.hosts.size());
}

// MPIJob's launcher pod: the file is for Open MPI, Intel MPI or MPICH, and the remote shell where it is not ssh.
std::string apply_mpi_job(RunOptions& options, const Environment& environment) {
  const auto file = first_set(
      environment, std::array<std::string_view, 4>{"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                                                   "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"});
  if (!file) return "";
  options.hosts = read_hostfile(file->value);
  deal_ranks(options.hosts, options.ranks);
  const auto shell =
      first_set(environment, std::array<std::string_view, 3>{"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent",
                                                             "I_MPI_HYDRA_BOOTSTRAP_EXEC"});
  if (shell && !options.has_shell) options.shell = shell->value;
  return fmt::format("{}={}: {} hosts", file->name, file->value, options.hosts.size());
}

// Pods that are alike, each with a number: PyTorchJob has torchrun's variables, an indexed Job the number.
std::string apply_pods(RunOptions& options, const Environment& environment) {
  const auto nodes = first_set(environment, std::array<std::string_view, 2>{"PET_NNODES", "NNODES"});
  const auto number =
      first_set(environment, std::array<std::string_view, 3>{"PET_NODE_RANK", "NODE_RANK", "JOB_COMPLETION_INDEX"});
  if (!nodes || !number) return "";
  const int count = whole_number(*nodes, 1, nodes_max);
  if (count == 1) return "";
  const auto address = first_set(environment, std::array<std::string_view, 2>{"PET_MASTER_ADDR", "MASTER_ADDR"});
  const auto port = first_set(environment, std::array<std::string_view, 2>{"PET_MASTER_PORT", "MASTER_PORT"});
  if (!address || !port)
    throw UsageError(
        fmt::format("{}={} means several nodes, and MASTER_ADDR or MASTER_PORT is not set: the name of node 0 "
                    "and a port; --standalone starts ranks on this node alone",
                    nodes->name, nodes->value));
  options.nodes = count;
  options.node_rank = whole_number(*number, 0, count - 1);
  options.master_address = address->value;
  options.master_port = whole_number(*port, 1, 65535);
  const auto per_node = first_set(environment, std::array<std::string_view, 2>{"PET_NPROC_PER_NODE", "NPROC_PER_NODE"});
  if (options.ranks == 0 && per_node && parse_integer(per_node->value))
    options.ranks = whole_number(*per_node, 1, nodes_max);
  if (options.ranks == 0) options.ranks = 1;
  return fmt::format("{}={}, {}={}: node {} of {}", nodes->name, nodes->value, number->name, number->value,
                     options.node_rank, count);
}

}  // namespace

std::string apply_allocation(RunOptions& options, const Environment& environment) {
  for (const char* name : {"TUTTI_STORE", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (environment.has(name)) return "";  // a rank of another job: that one has the hosts
  }
  for (const auto apply : {apply_slurm, apply_mpi_job, apply_pods}) {
    if (std::string found = apply(options, environment); !found.empty()) return found;
  }
  return "";
}

}  // namespace tutti::launch
