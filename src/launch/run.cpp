// run.cpp: from the command line to the exit status.
// SPDX-License-Identifier: Apache-2.0
#include "launch/run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "launch/agent.hpp"
#include "launch/cores.hpp"
#include "launch/dry_run.hpp"
#include "launch/hosts_job.hpp"
#include "launch/job.hpp"
#include "launch/local_crew.hpp"
#include "launch/master_port.hpp"
#include "launch/metrics_server.hpp"
#include "launch/mpirun.hpp"
#include "launch/options.hpp"
#include "launch/program.hpp"
#include "launch/rank_environment.hpp"
#include "store/tcp_server.hpp"
#include "wire/loopback.hpp"
#include "wire/secret.hpp"

namespace tutti::launch {
namespace {

constexpr int status_usage = 2;

std::string fresh_job_id() {
  std::array<std::byte, 8> random;
  wire::fill_random(random);
  std::string id;
  for (const std::byte byte : random) id += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return id;
}

wire::Secret choose_secret(const RunOptions& options, const Environment& environment) {
  const std::string given = environment.get("TUTTI_SECRET").value_or("");
  if (!given.empty()) {
    try {
      return wire::Secret::from_hex(given);
    } catch (const InvalidArgument& error) {
      throw UsageError(fmt::format("TUTTI_SECRET: {}", error.what()));
    }
  }
  if (options.nodes > 1)
    throw UsageError(
        "--nnodes: ranks on several nodes need a secret in common; set TUTTI_SECRET to the same 64 hexadecimal digits "
        "on every "
        "node (openssl rand -hex 32 makes some)");
  return wire::make_secret();
}

// The memory from argv[0] to the end of the last word; the kernel lays the words down one after the other.
std::span<char> title_memory(std::span<char* const> words) {
  char* const begin = program_invocation_name;
  char* const end = words.back() + std::strlen(words.back());
  return begin < end ? std::span<char>(begin, end) : std::span<char>();
}

// Rank 0 reads what tuttirun would. A job in the background of a shell must not take what is typed for the shell: ranks are
// in another session, so nothing would stop them.
bool may_read_input() {
  return fcntl(STDIN_FILENO, F_GETFD) >= 0 && (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

// A pipe that lands on a closed descriptor 0, 1 or 2 would be taken for a standard stream.
void fill_standard_streams() {
  while (true) {
    const int descriptor = open("/dev/null", O_RDWR);
    if (descriptor > STDERR_FILENO) {
      close(descriptor);
      return;
    }
    if (descriptor < 0) return;
  }
}

// Reports each message once. Runs on the store's thread, which ranks wait for: a full stderr does not stop it.
std::function<void(const std::string&)> tell_troubles(std::string_view name) {
  return [name = std::string(name), told = std::vector<std::string>()](const std::string& sentence) mutable {
    constexpr std::size_t told_max = 8;
    pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (told.size() >= told_max || std::ranges::find(told, sentence) != told.end() || poll(&room, 1, 0) != 1) return;
    told.push_back(sentence);
    const std::string line = fmt::format("{}: {}\n", name, sentence);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  };
}

int start_on_hosts(std::string_view name, const RunOptions& options, const Environment& environment) {
  if (options.backend == "mpi")
    throw UsageError(
        "-B mpi: the ranks are started by mpirun, which takes hosts itself; start them by mpirun or srun, with "
        "TUTTI_BACKEND=mpi");
  if (!options.dump_folder.empty())
    throw UsageError("--dump writes the calls of this host's ranks; it does not go with -H; --trace does");
  if (options.metrics_port)
    throw UsageError(
        "--metrics serves the ranks of this host; it does not go with -H; start tuttirun on each host (--nnodes) for "
        "that");
  if (options.is_dry_run) {
    fmt::print("{}", describe_hosts(options));
    return 0;
  }
  return run_on_hosts({.name = name,
                       .options = options,
                       .environment = environment,
                       .secret = choose_secret(options, environment),
                       .id = fresh_job_id(),
                       .input = may_read_input() ? STDIN_FILENO : -1});
}

int start(std::string_view name, const RunOptions& options, std::span<char* const> words) {
  const Environment environment = Environment::of_process();
  if (!options.hosts.empty()) return start_on_hosts(name, options, environment);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0)
    throw UsageError(fmt::format("--wdir {}: {}", options.folder, std::strerror(errno)));
  const Program program = find_program(options, environment);
  if (options.backend == "mpi") return start_by_mpirun(options, program, environment);
  const int cores = usable_processors();
  Placement placement{.ranks_here = options.ranks > 0 ? options.ranks : cores,
                      .nodes = options.nodes,
                      .node_rank = options.node_rank,
                      .master_address = options.master_address};
  placement.first_rank = placement.node_rank * placement.ranks_here;
  placement.world_size = placement.nodes * placement.ranks_here;
  placement.threads = std::max(1, cores / placement.ranks_here);
  std::vector<cpu_set_t> processors;
  if (options.binding == Binding::core) processors = split_cores(placement.ranks_here);

  const bool is_first_node = placement.node_rank == 0;
  MasterPort port;
  if (options.master_port == 0) {
    port = free_master_port();
  } else if (is_first_node) {
    port = given_master_port(options.master_port);
  }
  placement.master_port = options.master_port == 0 ? port.port : options.master_port;
  const wire::Secret secret = choose_secret(options, environment);
  placement.secret = secret.hex();
  placement.job = fresh_job_id();

  const InheritedSignals signals = take_over_signals();  // before there are threads
  std::optional<TcpStoreServer> store;
  if (placement.nodes == 1 && options.is_dry_run) {
    placement.store = "127.0.0.1:(a free port)";
  } else if (placement.nodes == 1) {
    wire::require_loopback();
    store.emplace(TcpStoreServer::Options{.secret = secret, .on_trouble = tell_troubles(name)});
    placement.store = store->address().text();
  }
  const Variables common = common_variables(placement, options, environment);
  if (options.is_dry_run) {
    fmt::print("{}", describe_start(program, placement, common, processors));
    return 0;
  }

  LocalPlan local{.program = program,
                  .ranks = placement.ranks_here,
                  .first_rank = placement.first_rank,
                  .id = placement.job,
                  .common_environment = common_block(environment, common),
                  .processors = std::move(processors),
                  .input = may_read_input() ? STDIN_FILENO : -1,
                  .grace = options.grace,
                  .signals = signals,
                  .descriptors = make_room_for_pipes(placement.ranks_here),
                  .title = title_memory(words)};
  for (int rank = 0; rank < local.ranks; ++rank)
    local.own_environment.push_back(to_block(own_variables(placement, rank)));
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  LocalCrew crew(std::move(local));
  std::optional<MetricsServer> metrics;
  if (options.metrics_port) {
    metrics.emplace(*options.metrics_port, [&crew] { return crew.records().metrics(); });
    fmt::print(stderr, "{}: metrics at http://127.0.0.1:{}/metrics\n", name, metrics->port());
  }
  return run_job({.name = std::string(name),
                  .options = options,
                  .ranks = placement.ranks_here,
                  .first_rank = placement.first_rank,
                  .world_size = placement.world_size,
                  .signals = signals},
                 crew);
}

}  // namespace

int run_main(std::string_view name, std::span<char* const> words) {
  try {
    fill_standard_streams();
    const std::vector<std::string> texts(words.begin(), words.end());
    if (texts == std::vector<std::string>{"--agent"}) return run_agent(title_memory(words));
    const Parsed parsed = parse_options(name, texts);
    if (!parsed.text.empty()) {
      fmt::print("{}", parsed.text);
      return 0;
    }
    return start(name, parsed.options, words);
  } catch (const UsageError& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return status_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace tutti::launch
