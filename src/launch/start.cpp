// start.cpp: arguments, environments and descriptors of the ranks.
// SPDX-License-Identifier: Apache-2.0
#include "launch/start.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));  // execve does not write
  return pointers;
}

bool has_colour(int descriptor) {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) != 0 && !(none && *none) && !(terminal && std::string_view(terminal) == "dumb");
}

// Rank 0 reads what tuttirun would. A job in the background of a shell must not take what is typed for the shell: ranks are
// in another session, so nothing would stop them.
bool may_read_input() {
  return fcntl(STDIN_FILENO, F_GETFD) >= 0 && (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

}  // namespace

rlimit make_room_for_pipes(int ranks) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto needed = static_cast<rlim_t>(ranks) * 5 + 64;
  rlimit current = before;
  while (current.rlim_cur < needed && wire::raise_descriptor_limit()) getrlimit(RLIMIT_NOFILE, &current);
  return before;
}

RankOutputOptions output_options(const JobPlan& plan) {
  const RunOptions& options = plan.options;
  return {.ranks = plan.ranks,
          .first_rank = plan.first_rank,
          .log_folder = options.log_folder,
          .is_shown = !options.is_quiet && (options.log_folder.empty() || options.tees),
          .has_prefix = options.has_prefix,
          .has_colour = {has_colour(STDOUT_FILENO), has_colour(STDERR_FILENO)}};
}

Guard start_guard(const JobPlan& plan, const RankOutput& output, const Cgroup& cgroup) {
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<char*> words = pointers_to(plan.program.words);
  words.push_back(nullptr);
  const std::vector<char*> common = pointers_to(plan.common_environment);
  std::vector<std::vector<char*>> environments;
  for (const auto& own : plan.own_environment) {
    std::vector<char*>& environment = environments.emplace_back(pointers_to(own));
    environment.insert(environment.end(), common.begin(), common.end());
    environment.push_back(nullptr);
  }

  GuardPlan guard{.cgroup = Cgroup::at(cgroup.path()), .grace = plan.options.grace, .title = plan.title};
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    guard.ranks.push_back(
        {.path = plan.program.path.c_str(),
         .words = words.data(),
         .environment = environments[index].data(),
         .input = rank == 0 && plan.first_rank == 0 && may_read_input() ? STDIN_FILENO : nothing.get(),
         .output = output.writer(rank, Stream::output),
         .error = output.writer(rank, Stream::error),
         .signals = plan.signals,
         .descriptors = plan.descriptors});
    if (!plan.processors.empty()) guard.ranks.back().processors = plan.processors[index];
  }
  return Guard(guard);
}

}  // namespace tutti::launch
