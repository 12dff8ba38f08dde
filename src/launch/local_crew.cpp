// local_crew.cpp: arguments, environments and descriptors of the ranks; what the guard reports of them.
// SPDX-License-Identifier: Apache-2.0
#include "launch/local_crew.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <limits>

#include "launch/process_tree.hpp"
#include "record/segment.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

using Kind = GuardMessage::Kind;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));  // execve does not write
  return pointers;
}

// The variable is that of the ranks, whoever set it.
std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('='))
      return variable.substr(name.size() + 1);
  }
  return {};
}

RankRecords records_for(const LocalPlan& plan) {
  const std::string folder = value_of(plan.common_environment, "TUTTI_TRACE");
  const Environment environment{{"TUTTI_TRACE_ENTRIES", value_of(plan.common_environment, "TUTTI_TRACE_ENTRIES")}};
  return {plan.ranks, plan.first_rank, folder, record::traced_entries(environment)};
}

}  // namespace

rlimit make_room_for_pipes(int ranks) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto needed = static_cast<rlim_t>(ranks) * 8 + 64;
  rlimit current = before;
  while (current.rlim_cur < needed && wire::raise_descriptor_limit()) getrlimit(RLIMIT_NOFILE, &current);
  return before;
}

LocalCrew::LocalCrew(LocalPlan plan)
    : plan_(std::move(plan)),
      pipes_(plan_.ranks),
      news_(plan_.ranks),
      records_(records_for(plan_)),
      rounds_(plan_.hears_rounds ? plan_.ranks : 0),
      cgroup_(Cgroup::below_own(plan_.id)) {}

void LocalCrew::start() {
  guard_.emplace(start_guard());
  pipes_.close_writers();
  news_.close_readers();
  rounds_.close_readers();
}

Guard LocalCrew::start_guard() const {
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<char*> words = pointers_to(plan_.program.words);
  words.push_back(nullptr);
  const std::vector<char*> common = pointers_to(plan_.common_environment);
  std::vector<std::vector<char*>> environments;
  std::vector<std::string> news, rounds, records;  // not moved any more once they are pointed to
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    news.push_back(fmt::format("TUTTI_LAUNCHER_FD={}", news_.reader(rank)));
    records.push_back(records_.variable(rank));
    if (plan_.hears_rounds) rounds.push_back(fmt::format("TUTTI_ROUNDS_FD={}", rounds_.reader(rank)));
  }
  for (std::size_t rank = 0; rank < plan_.own_environment.size(); ++rank) {
    std::vector<char*>& environment = environments.emplace_back(pointers_to(plan_.own_environment[rank]));
    if (news_.reader(static_cast<int>(rank)) >= 0) environment.push_back(news[rank].data());
    if (!records[rank].empty()) environment.push_back(records[rank].data());
    if (plan_.hears_rounds) environment.push_back(rounds[rank].data());
    environment.insert(environment.end(), common.begin(), common.end());
    environment.push_back(nullptr);
  }

  GuardPlan guard{.cgroup = Cgroup::at(cgroup_.path()), .grace = plan_.grace, .title = plan_.title};
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const bool reads_input = rank == 0 && plan_.first_rank == 0 && plan_.input >= 0;
    guard.ranks.push_back({.path = plan_.program.path.c_str(),
                           .words = words.data(),
                           .environment = environments[index].data(),
                           .input = reads_input ? plan_.input : nothing.get(),
                           .output = pipes_.writer(rank, Stream::output),
                           .error = pipes_.writer(rank, Stream::error),
                           .news = news_.reader(rank),
                           .record = records_.file(rank),
                           .rounds = plan_.hears_rounds ? rounds_.reader(rank) : -1,
                           .signals = plan_.signals,
                           .descriptors = plan_.descriptors});
    if (!plan_.processors.empty()) guard.ranks.back().processors = plan_.processors[index];
  }
  return Guard(guard);
}

void LocalCrew::watch(std::vector<pollfd>& into, Room room) const {
  if (guard_ && !is_guard_gone_) into.push_back({.fd = guard_->fd(), .events = POLLIN, .revents = 0});
  if (room == Room::some && !pipes_.is_drained()) into.push_back({.fd = pipes_.fd(), .events = POLLIN, .revents = 0});
}

void LocalCrew::serve(CrewListener& listener, Room room) {
  serve(listener, room == Room::some ? std::numeric_limits<std::size_t>::max() : 0);
}

void LocalCrew::serve(CrewListener& listener, std::size_t output_bytes_max) {
  pipes_.pump(
      [&](int rank, Stream stream, std::string_view bytes) {
        const int number = plan_.first_rank + rank;
        if (bytes.empty()) return listener.output_ended(number, stream);
        listener.output(number, stream, bytes);
      },
      output_bytes_max);
  if (guard_ && !is_guard_gone_) hear_guard(listener);
}

void LocalCrew::hear_guard(CrewListener& listener) {
  GuardMessage message;
  while (true) {
    switch (guard_->receive(message)) {
      case Guard::Received::nothing: return;
      case Guard::Received::closed: return lose_guard(listener);
      case Guard::Received::message: break;
    }
    if (message.kind == Kind::done) {
      is_guard_gone_ = true;
      waitpid(guard_->id(), nullptr, 0);
      return;
    }
    hear(message, listener);
  }
}

void LocalCrew::hear(const GuardMessage& message, CrewListener& listener) const {
  const int rank = plan_.first_rank + message.rank;
  switch (message.kind) {
    case Kind::not_started: listener.rank_not_started(rank, message.value); break;
    case Kind::ended: listener.rank_ended(rank, message.process, message.value); break;
    case Kind::left_behind: listener.left_behind(message.value); break;
    case Kind::unkillable:
      listener.notice(fmt::format("process {} does not end, not even by SIGKILL", message.process));
      break;
    default: break;
  }
}

// The kernel has killed the ranks with the guard; processes that they started are now our children.
void LocalCrew::lose_guard(CrewListener& listener) {
  is_guard_gone_ = true;
  listener.part_lost({.kind = Cause::Kind::guard_lost, .process = guard_->id()});
  const auto left = kill_descendants(cgroup_, std::chrono::steady_clock::now() + unkillable_after, [](pid_t, int) {});
  for (const ProcessStatus& process : left)
    listener.notice(fmt::format("process {} ({}) does not end", process.id, process.name));
  cgroup_.remove();
}

void LocalCrew::tell(const GuardMessage& message) {
  if (guard_ && !is_guard_gone_) guard_->send(message);
}

std::string LocalCrew::last_call(int rank) const {
  const auto snapshot = records_.read(rank - plan_.first_rank);
  return snapshot ? describe_last_call(*snapshot) : std::string();
}

void LocalCrew::signal_ranks(int signal) { tell({.kind = Kind::signal_ranks, .value = signal}); }

void LocalCrew::signal_all(int signal) { tell({.kind = Kind::signal_all, .value = signal}); }

void LocalCrew::end(int signal, Duration grace) {
  const auto grace_ms = std::chrono::duration_cast<std::chrono::milliseconds>(grace).count();
  tell({.kind = Kind::end, .value = signal, .grace_ms = grace_ms});
}

}  // namespace tutti::launch
