// hosts_job.cpp: from the options to agents on every host, and from there to the supervisor.
// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/made_fd.hpp"
#include "launch/agent_crew.hpp"
#include "launch/attempt.hpp"
#include "launch/cause.hpp"
#include "launch/dry_run.hpp"
#include "launch/host_watch.hpp"
#include "launch/job.hpp"
#include "launch/remote_shell.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

// A signal came while the hosts were being prepared.
struct AskedToEnd {
  int signal = 0;
};

// `tutti run` is another program than tuttirun, which is installed beside it.
std::string tuttirun_path() {
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (own.parent_path() / "tuttirun").string();
}

JobOrder make_order(const HostsJob& job, std::vector<Host> hosts, int restart) {
  const RunOptions& options = job.options;
  JobOrder order{.hosts = std::move(hosts),
                 .fan_out = options.fan_out,
                 .silence = options.silence,
                 .start_timeout = options.start_timeout,
                 .shell = split_shell_words("--ssh", options.shell),
                 .tuttirun = options.remote_tuttirun.empty() ? tuttirun_path() : options.remote_tuttirun,
                 .job = fresh_job_id(),
                 .secret = choose_secret(options, job.environment, restart).hex(),
                 .restart = restart,
                 .folder = options.folder.empty() ? std::filesystem::current_path().string() : options.folder,
                 .options = options};
  for (const auto& [name, value] : job.environment.variables()) {
    if (!belongs_to_host(name) && name != secret_variable) order.environment.emplace_back(name, value);
  }
  return order;
}

UniqueFd open_interruptions() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&watched, signal);
  return made(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "a descriptor for signals");
}

void prepare_hosts(AgentCrew& crew) {
  const UniqueFd interruptions = open_interruptions();
  crew.prepare([&](std::vector<pollfd>& watched, TimePoint until) {
    watched.push_back({.fd = interruptions.get(), .events = POLLIN, .revents = 0});
    poll(watched.data(), watched.size(), wire::poll_timeout_ms(std::chrono::steady_clock::now(), until));
    signalfd_siginfo info;
    if (read(interruptions.get(), &info, sizeof(info)) == sizeof(info))
      throw AskedToEnd{static_cast<int>(info.ssi_signo)};
  });
}

// With --elastic a job starts without hosts that cannot be used, as long as enough ranks are left. A host without slots gets
// one rank per core, which is not known before it answers: it counts as one.
bool may_leave_out(const RunOptions& options, const std::vector<Host>& hosts, const HostUnusable& unusable) {
  int ranks = 0;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (host != unusable.host()) ranks += std::max(1, hosts[host].slots);
  }
  return options.ranks_min && hosts.size() > 1 && ranks >= *options.ranks_min;
}

// The agents of the hosts that can be used, and the names of the others.
struct Prepared {
  std::unique_ptr<AgentCrew> crew = {};
  std::vector<std::string> absent = {};
};

Prepared prepare_those_that_answer(const HostsJob& job, int restart) {
  std::vector<Host> hosts = job.options.hosts;
  std::vector<std::string> absent;
  while (true) {
    try {
      auto crew = std::make_unique<AgentCrew>(make_order(job, hosts, restart));
      prepare_hosts(*crew);
      return {.crew = std::move(crew), .absent = std::move(absent)};
    } catch (const HostUnusable& unusable) {
      if (!may_leave_out(job.options, hosts, unusable)) throw;
      fmt::print(stderr, "{}: {}; starting without it\n", job.name, unusable.what());
      absent.push_back(hosts[unusable.host()].name);
      hosts.erase(hosts.begin() + static_cast<std::ptrdiff_t>(unusable.host()));
    }
  }
}

}  // namespace

bool belongs_to_host(std::string_view variable) {
  constexpr std::array<std::string_view, 16> names = {
      "HOME", "USER", "LOGNAME", "SHELL",  "HOSTNAME", "HOST",    "MAIL",          "PWD",
      "_",    "TERM", "OLDPWD",  "TMPDIR", "SHLVL",    "DISPLAY", "INVOCATION_ID", "JOURNAL_STREAM"};
  constexpr std::array<std::string_view, 5> prefixes = {"SSH_", "XDG_", "DBUS_", "SUDO_", "BASH_FUNC_"};
  return std::ranges::find(names, variable) != names.end() ||
         std::ranges::any_of(prefixes, [variable](std::string_view one) { return variable.starts_with(one); });
}

int run_on_hosts(const HostsJob& job) {
  const InheritedSignals signals = take_over_signals();
  const std::optional<TimePoint> deadline = deadline_of(job.options);
  try {
    return run_attempts(job.name, job.options.restarts, [&](int restart) {
      const auto [crew, absent] = prepare_those_that_answer(job, restart);
      HostWatch watch(absent, split_shell_words("--ssh", job.options.shell));
      crew->set_input(job.input);
      const std::vector<std::string> hosts = crew->host_of_rank();
      return run_job({.name = std::string(job.name),
                      .options = job.options,
                      .ranks = static_cast<int>(hosts.size()),
                      .world_size = static_cast<int>(hosts.size()),
                      .hosts = hosts,
                      .signals = signals,
                      .deadline = deadline,
                      .absent_hosts = absent.empty() ? nullptr : &watch,
                      .continues_logs = restart > 0},
                     *crew);
    });
  } catch (const AskedToEnd& asked) {
    fmt::print(stderr, "{}: ended by signal {} before any rank was started\n", job.name, describe_signal(asked.signal));
    return 128 + asked.signal;
  }
}

std::string describe_hosts(const RunOptions& options) {
  const std::vector<std::string> shell = split_shell_words("--ssh", options.shell);
  const std::string tuttirun = options.remote_tuttirun.empty() ? tuttirun_path() : options.remote_tuttirun;
  const HostTree tree{.hosts = static_cast<int>(options.hosts.size()), .fan_out = options.fan_out};
  std::string text = fmt::format("{} hosts, nothing was started\n", options.hosts.size());
  for (int node = 1; node <= tree.hosts; ++node) {
    const Host& host = options.hosts[static_cast<std::size_t>(node - 1)];
    const int parent = tree.parent_of(node);
    const std::string from = parent == 0 ? "here" : options.hosts[static_cast<std::size_t>(parent - 1)].name;
    const std::string ranks = host.slots == 0 ? "one rank per core" : fmt::format("{} ranks", host.slots);
    std::vector<std::string> words;
    for (const std::string& word : remote_command(shell, host.name, tuttirun)) words.push_back(quoted(word));
    const bool is_local = parent == 0 && is_own_name(host.name);
    text +=
        fmt::format("\n{}: {}, from {}\n  {}\n", host.name, ranks, from,
                    is_local ? fmt::format("{} --agent", quoted(tuttirun)) : fmt::format("{}", fmt::join(words, " ")));
  }
  return text;
}

}  // namespace tutti::launch
