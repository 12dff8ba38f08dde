// run.cpp: from the command line to the exit status.
// SPDX-License-Identifier: Apache-2.0
#include "launch/run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/agent.hpp"
#include "launch/hosts_job.hpp"
#include "launch/local_job.hpp"
#include "launch/options.hpp"

namespace tutti::launch {
namespace {

constexpr int status_usage = 2;

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
  return run_on_hosts(
      {.name = name, .options = options, .environment = environment, .input = may_read_input() ? STDIN_FILENO : -1});
}

int start(std::string_view name, const RunOptions& options, std::span<char* const> words) {
  const Environment environment = Environment::of_process();
  if (!options.allocation.empty() && !options.is_quiet) fmt::print(stderr, "{}: {}\n", name, options.allocation);
  if (!options.hosts.empty()) return start_on_hosts(name, options, environment);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0)
    throw UsageError(fmt::format("--wdir {}: {}", options.folder, std::strerror(errno)));
  return run_here({.name = name,
                   .options = options,
                   .environment = environment,
                   .title = title_memory(words),
                   .input = may_read_input() ? STDIN_FILENO : -1});
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
