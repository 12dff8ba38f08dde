// mpirun.cpp: finding the launcher of an MPI, and becoming it.
// SPDX-License-Identifier: Apache-2.0
//
// A process gets its place in MPI from the launcher that started it, by a protocol that is the MPI's own. So tuttirun hands the job over:
// output, signals and the end of the job are mpirun's then.
#include "launch/mpirun.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "launch/cores.hpp"
#include "launch/dry_run.hpp"
#include "launch/rank_environment.hpp"

namespace tutti::launch {
namespace {

/// The names under which an MPI's launcher may be found, in the order in which they are tried. A plain mpirun is the one that the site has
/// chosen; Debian installs the others beside it.
std::vector<std::string_view> launcher_names(std::string_view mpi) {
  if (mpi == "openmpi") return {"mpirun.openmpi", "mpirun"};
  if (mpi == "mpich") return {"mpirun.mpich", "mpiexec.hydra", "mpirun"};
  return {"mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"};
}

std::string find_in_path(std::string_view file, const Environment& environment) {
  const std::string path = environment.get("PATH").value_or("");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = fmt::format("{}/{}", path.substr(begin, end - begin), file);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return {};
}

/// Asks the launcher itself: its name does not tell.
bool says_open_mpi(const std::string& path) {
  const std::string command = fmt::format("{} --version 2>/dev/null", quoted(path));
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return false;
  std::string text(512, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  pclose(pipe);
  return text.find("Open MPI") != std::string::npos || text.find("OpenRTE") != std::string::npos;
}

MpiLauncher find_launcher(const Environment& environment) {
  const std::string asked = environment.get("TUTTI_MPI").value_or("");
  const bool is_name = asked == "openmpi" || asked == "mpich";
  for (const std::string_view name : launcher_names(asked)) {
    const std::string path = find_in_path(name, environment);
    if (path.empty()) continue;
    const bool is_open_mpi = says_open_mpi(path);
    if (is_name && is_open_mpi != (asked == "openmpi")) continue;
    return {.path = path, .is_open_mpi = is_open_mpi};
  }
  throw UsageError(fmt::format(
      "-B mpi: no mpirun{} was found in PATH, and MPI's ranks are started by it; install Open MPI or MPICH (Debian: "
      "openmpi-bin, mpich), or use -B auto. `tutti doctor` says which MPI libraries there are",
      is_name ? " of " + asked : ""));
}

void refuse(std::string_view option, std::string_view instead) {
  throw UsageError(fmt::format("-B mpi: the ranks are started by mpirun, which has no {}; {}", option, instead));
}

void check_options(const RunOptions& options) {
  constexpr std::string_view own_way =
      "leave it out, or start the ranks by mpirun and its own options, with TUTTI_BACKEND=mpi";
  if (options.nodes > 1) refuse("--nnodes", "start the job by mpirun or srun with their hosts, and TUTTI_BACKEND=mpi");
  if (options.binding != Binding::none) refuse("--bind", own_way);
  if (!options.log_folder.empty()) refuse("--log-dir", own_way);
  if (options.is_quiet) refuse("--quiet", own_way);
  if (options.timeout) refuse("--timeout", own_way);
}

}  // namespace

std::vector<std::string> mpirun_command(const MpiLauncher& launcher, const RunOptions& options,
                                        const Program& program) {
  check_options(options);
  const int ranks = options.ranks > 0 ? options.ranks : usable_processors();
  std::vector<std::string> words = {launcher.path};
  if (launcher.is_open_mpi) words.emplace_back("--oversubscribe");
  words.insert(words.end(), {"-n", std::to_string(ranks), program.path});
  words.insert(words.end(), program.words.begin() + 1, program.words.end());
  return words;
}

int start_by_mpirun(const RunOptions& options, const Program& program, const Environment& environment) {
  check_options(options);
  const MpiLauncher launcher = find_launcher(environment);
  const std::vector<std::string> words = mpirun_command(launcher, options, program);
  if (options.is_dry_run) {
    std::vector<std::string> shown = {"TUTTI_BACKEND=mpi"};
    std::ranges::transform(words, std::back_inserter(shown), quoted);
    fmt::print("{}\n", fmt::join(shown, " "));
    return 0;
  }
  Variables variables = {{"TUTTI_BACKEND", "mpi"}};
  variables.insert(variables.end(), options.variables.begin(), options.variables.end());
  std::vector<std::string> block = common_block(environment, variables);
  std::vector<char*> arguments, set;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  for (std::string& entry : block) set.push_back(entry.data());
  arguments.push_back(nullptr);
  set.push_back(nullptr);
  execve(launcher.path.c_str(), arguments.data(), set.data());
  throw UsageError(fmt::format("-B mpi: {} cannot be started: {}", launcher.path, std::strerror(errno)));
}

}  // namespace tutti::launch
