// libraries.cpp: how the ranks of Tutti and of each peer are started.
// SPDX-License-Identifier: Apache-2.0
#include "bench/libraries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <initializer_list>
#include <random>

#include <tutti/error.hpp>

#include "base/environment.hpp"

namespace tutti::bench {

namespace {

namespace fs = std::filesystem;

// In a build folder beside the program, in an installed copy below libexec.
std::string peer_file(const std::string& name, std::string_view remedy) {
  const fs::path here = fs::path(own_program()).parent_path();
  for (const fs::path& folder : {here / "peers", here.parent_path() / "libexec" / "tutti" / "peers"}) {
    if (fs::exists(folder / name)) return (folder / name).string();
  }
  throw Unsupported(fmt::format("{} is not among the peers beside {}; {}", name, here.string(), remedy));
}

std::string first_program(std::initializer_list<std::string> names, std::string_view remedy) {
  for (const std::string& name : names) {
    if (const std::string found = find_program(name); !found.empty()) return found;
  }
  throw Unsupported(fmt::format("there is no {} in PATH; {}", fmt::join(names, " and no "), remedy));
}

std::string random_secret() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 8; ++i) text += fmt::format("{:08x}", random());
  return text;
}

int per_host(const BenchHosts& hosts, int ranks) {
  return hosts.names.empty() ? ranks : ranks / static_cast<int>(hosts.names.size());
}

// The process starts on that host.
ProcessStart placed(ProcessStart process, const BenchHosts& hosts, std::size_t host) {
  if (!hosts.names.empty()) process.arguments.insert(process.arguments.begin(), {hosts.agent, hosts.names.at(host)});
  return process;
}

// One process for each rank, told apart by the variables that torchrun made common.
JobStart process_per_rank(const std::string& library, int ranks, const BenchHosts& hosts, const ProcessStart& process) {
  JobStart start{.library = library, .ranks = ranks};
  const int local = per_host(hosts, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    ProcessStart one = placed(process, hosts, static_cast<std::size_t>(rank / local));
    for (const auto& [name, number] : {std::pair("RANK", rank), std::pair("LOCAL_RANK", rank % local),
                                       std::pair("WORLD_SIZE", ranks), std::pair("LOCAL_WORLD_SIZE", local)}) {
      one.environment.emplace_back(name, std::to_string(number));
    }
    if (!hosts.names.empty()) {
      one.environment.emplace_back("TUTTI_HOST_ID", hosts.names[static_cast<std::size_t>(rank / local)]);
      one.environment.emplace_back("TUTTI_INTERFACE", hosts.network_interface);
      one.environment.emplace_back("GLOO_SOCKET_IFNAME", hosts.network_interface);
    }
    start.processes.push_back(std::move(one));
  }
  return start;
}

// "a:2,b:2", as Open MPI takes it.
std::string slots_of(const BenchHosts& hosts, int ranks) {
  std::vector<std::string> slots;
  for (const std::string& name : hosts.names) slots.push_back(fmt::format("{}:{}", name, per_host(hosts, ranks)));
  return fmt::format("{}", fmt::join(slots, ","));
}

// The folder of an MPI that was installed for this program, beside its rank program; empty if the system's is used.
std::string own_copy(const std::string& mpi) {
  const fs::path folder = fs::path(own_program()).parent_path() / "peers" / mpi;
  return fs::exists(folder / "bin") ? fs::canonical(folder).string() : "";
}

// Version 5 has another launcher than version 4; each passes over the other's variables.
void spread_open_mpi(ProcessStart& process, const BenchHosts& hosts, int ranks) {
  if (hosts.names.empty()) return;
  process.arguments.insert(process.arguments.begin() + 1, {"--host", slots_of(hosts, ranks)});
  for (const auto& [name, value] :
       {std::pair("PRTE_MCA_plm_ssh_agent", hosts.agent), std::pair("OMPI_MCA_plm_rsh_agent", hosts.agent),
        std::pair("PRTE_MCA_prte_if_include", hosts.network_interface),
        std::pair("OMPI_MCA_oob_tcp_if_include", hosts.network_interface),
        std::pair("OMPI_MCA_btl_tcp_if_include", hosts.network_interface),
        std::pair("OMPI_MCA_pml", std::string("ob1"))}) {
    process.environment.emplace_back(name, value);
  }
  process = placed(std::move(process), hosts, 0);
}

JobStart open_mpi_job(const Coordinator& coordinator, int ranks, const std::string& collectives,
                      const BenchHosts& hosts) {
  constexpr std::string_view remedy = "install openmpi-bin and libopenmpi-dev, and build again";
  const std::string library = collectives.empty() ? "openmpi" : "openmpi-" + collectives;
  const std::string root = own_copy("openmpi");
  const std::string launcher =
      root.empty() ? first_program({"mpirun.openmpi", "mpirun"}, remedy) : root + "/bin/mpirun";
  std::vector<std::string> arguments{launcher, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"};
  if (!collectives.empty()) {
    for (const std::string& word : {std::string("--mca"), "coll_" + collectives + "_priority", std::string("100")}) {
      arguments.push_back(word);
    }
  }
  for (const std::string& word : {std::string("-n"), std::to_string(ranks), peer_file("mpi_peer_openmpi", remedy),
                                  coordinator.socket_path(), library}) {
    arguments.push_back(word);
  }
  ProcessStart process{.arguments = std::move(arguments)};
  if (!root.empty()) process.environment.emplace_back("OPAL_PREFIX", root);
  spread_open_mpi(process, hosts, ranks);
  return {.library = library, .ranks = ranks, .processes = {std::move(process)}};
}

// Hydra is the launcher of MPICH and of Intel MPI.
void spread_hydra(ProcessStart& process, const BenchHosts& hosts, int ranks) {
  if (hosts.names.empty()) return;
  process.arguments.insert(
      process.arguments.begin() + 1,
      {"-hosts", fmt::format("{}", fmt::join(hosts.names, ",")), "-ppn", std::to_string(per_host(hosts, ranks)),
       "-launcher", "ssh", "-launcher-exec", hosts.agent, "-iface", hosts.network_interface});
  process.environment.emplace_back("FI_TCP_IFACE", hosts.network_interface);
  process = placed(std::move(process), hosts, 0);
}

JobStart mpich_job(const Coordinator& coordinator, int ranks, const BenchHosts& hosts) {
  constexpr std::string_view remedy = "install mpich and libmpich-dev, and build again";
  const std::string root = own_copy("mpich");
  const std::string launcher =
      root.empty() ? first_program({"mpirun.mpich", "mpiexec.hydra"}, remedy) : root + "/bin/mpiexec.hydra";
  ProcessStart process{.arguments = {launcher, "-n", std::to_string(ranks), peer_file("mpi_peer_mpich", remedy),
                                     coordinator.socket_path(), "mpich"}};
  spread_hydra(process, hosts, ranks);
  return {.library = "mpich", .ranks = ranks, .processes = {std::move(process)}};
}

// Inside a host it needs no libfabric; between hosts, one with the provider tcp.
JobStart intel_mpi_job(const Coordinator& coordinator, int ranks, const BenchHosts& hosts) {
  constexpr std::string_view remedy = "./dev bench installs Intel MPI into build/impi: run it, or build again";
  const std::string root = own_copy("impi");
  const bool is_here = hosts.names.empty();
  ProcessStart process{.arguments = {first_program({root + "/bin/mpiexec.hydra"}, remedy), "-n", std::to_string(ranks),
                                     peer_file("mpi_peer_impi", remedy), coordinator.socket_path(), "impi"},
                       .environment = {{"I_MPI_ROOT", root}, {"I_MPI_FABRICS", is_here ? "shm" : "shm:ofi"}}};
  if (!is_here) process.environment.emplace_back("FI_PROVIDER", "tcp");
  spread_hydra(process, hosts, ranks);
  return {.library = "impi", .ranks = ranks, .processes = {std::move(process)}};
}

// The ranks of the backend mpi are started by the launcher of an MPI, and find their numbers through it.
JobStart through_mpi(JobStart job, const ProcessStart& process) {
  constexpr std::string_view remedy = "install openmpi-bin or mpich";
  const std::string launcher = first_program({"mpirun.openmpi", "mpirun.mpich", "mpirun"}, remedy);
  ProcessStart start{.arguments = {launcher}, .environment = process.environment};
  if (launcher.ends_with("openmpi")) {
    for (const char* word : {"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"})
      start.arguments.emplace_back(word);
  }
  start.arguments.emplace_back("-n");
  start.arguments.push_back(std::to_string(job.ranks));
  start.arguments.insert(start.arguments.end(), process.arguments.begin(), process.arguments.end());
  job.processes = {std::move(start)};
  return job;
}

// ./dev names the Python that has torch; otherwise the one of the active environment.
JobStart gloo_job(const Coordinator& coordinator, int ranks, const BenchHosts& hosts) {
  const std::string python = Environment::of_process().get("TUTTI_PYTHON").value_or("python3");
  constexpr std::string_view remedy = "activate an environment that has torch, or name its Python in TUTTI_PYTHON";
  return process_per_rank("gloo", ranks, hosts,
                          {.arguments = {first_program({python}, remedy), peer_file("gloo_peer.py", "build again"),
                                         coordinator.socket_path(), "gloo", coordinator.folder() + "/gloo-meeting"}});
}

}  // namespace

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

JobStart tutti_job(const Coordinator& coordinator, const TuttiStart& start) {
  ProcessStart process{.arguments = {start.program, "bench-rank", "--socket", coordinator.socket_path(), "--name",
                                     start.library, "--backend", start.backend, "--meeting-point",
                                     fmt::format("file://{}/{}-meeting", coordinator.folder(), start.library)},
                       .environment = {{"TUTTI_SECRET", random_secret()}}};
  if (!start.table_path.empty()) process.environment.emplace_back("TUTTI_TABLE", start.table_path);
  if (start.backend == "mpi") return through_mpi({.library = start.library, .ranks = start.ranks}, process);
  return process_per_rank(start.library, start.ranks, start.hosts, process);
}

std::vector<JobStart> peer_jobs(const Coordinator& coordinator, std::string_view peer, int ranks,
                                const BenchHosts& hosts) {
  if (peer == "openmpi") {
    return {open_mpi_job(coordinator, ranks, "", hosts), open_mpi_job(coordinator, ranks, "sm", hosts),
            open_mpi_job(coordinator, ranks, "han", hosts)};
  }
  if (peer == "mpich") return {mpich_job(coordinator, ranks, hosts)};
  if (peer == "impi") return {intel_mpi_job(coordinator, ranks, hosts)};
  if (peer == "gloo") return {gloo_job(coordinator, ranks, hosts)};
  throw InvalidArgument(fmt::format("--against {}: not a peer; there are {}", peer, fmt::join(peer_names, ", ")));
}

}  // namespace tutti::bench
