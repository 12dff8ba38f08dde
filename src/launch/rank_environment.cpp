// rank_environment.cpp: torch's variables, Tutti's variables, thread counts.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tutti::launch {
namespace {

// What decides how many threads OpenMP (and through it MKL, OpenBLAS and torch), XLA's CPU client and TensorFlow start.
// XLA takes no such number in XLA_FLAGS; its thread pool asks NPROC.
constexpr std::array thread_variables = {"OMP_NUM_THREADS", "NPROC", "TF_NUM_INTRAOP_THREADS",
                                         "TF_NUM_INTEROP_THREADS"};

constexpr std::array<std::string_view, 6> own_names = {
    "RANK", "LOCAL_RANK", "TUTTI_STORE", "TUTTI_LAUNCHER_FD", "TUTTI_ROUNDS_FD", "TUTTI_RECORD_FD"};

}  // namespace

Variables common_variables(const Placement& placement, const RunOptions& options, const Environment& environment) {
  Variables variables = {{"WORLD_SIZE", std::to_string(placement.world_size)},
                         {"LOCAL_WORLD_SIZE", std::to_string(placement.ranks_here)},
                         {"GROUP_RANK", std::to_string(placement.node_rank)},
                         {"GROUP_WORLD_SIZE", std::to_string(placement.nodes)},
                         {"NODE_RANK", std::to_string(placement.node_rank)},
                         {"MASTER_ADDR", placement.master_address},
                         {"MASTER_PORT", std::to_string(placement.master_port)},
                         {"TUTTI_JOB", placement.job},
                         {"TUTTI_SECRET", placement.secret},
                         {"TUTTI_RESTART", std::to_string(placement.restart)}};
  if (!placement.store.empty()) variables.emplace_back("TUTTI_STORE", placement.store);
  if (!options.backend.empty()) variables.emplace_back("TUTTI_BACKEND", options.backend);
  for (const char* name : thread_variables) {
    if (!environment.has(name)) variables.emplace_back(name, std::to_string(placement.threads));
  }
  for (const auto& asked : options.variables) {
    std::erase_if(variables, [&](const auto& variable) { return variable.first == asked.first; });
    variables.push_back(asked);
  }
  return variables;
}

Variables own_variables(const Placement& placement, int local_rank) {
  return {{"RANK", std::to_string(placement.first_rank + local_rank)}, {"LOCAL_RANK", std::to_string(local_rank)}};
}

bool is_foreign(std::string_view name) {
  constexpr std::array<std::string_view, 5> prefixes = {"OMPI_COMM_WORLD_", "PMI_", "PMIX_", "TORCHELASTIC_",
                                                        "MPI_LOCAL"};
  if (name.starts_with("PMIX_MCA_")) return false;  // a person's settings, not a rank's place
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> common_block(const Environment& environment, const Variables& common) {
  const auto is_left_out = [&common](std::string_view name) {
    return is_foreign(name) || std::find(own_names.begin(), own_names.end(), name) != own_names.end() ||
           std::any_of(common.begin(), common.end(), [name](const auto& replaced) { return replaced.first == name; });
  };
  std::vector<std::string> block;
  for (const auto& [name, value] : environment.variables()) {
    if (!is_left_out(name)) block.push_back(name + "=" + value);
  }
  std::vector<std::string> set = to_block(common);
  block.insert(block.end(), set.begin(), set.end());
  return block;
}

std::vector<std::string> to_block(const Variables& variables) {
  std::vector<std::string> block;
  for (const auto& [name, value] : variables) block.push_back(name + "=" + value);
  return block;
}

}  // namespace tutti::launch
