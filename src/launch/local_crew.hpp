// local_crew.hpp: the ranks of this host: a guard, and the pipes that they write to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/crew.hpp"
#include "launch/guard.hpp"
#include "launch/program.hpp"
#include "launch/rank_news.hpp"
#include "launch/rank_pipes.hpp"
#include "launch/rank_records.hpp"

namespace tutti::launch {

struct LocalPlan {
  Program program = {};
  int ranks = 1;  // here
  int first_rank = 0;
  std::string id = {};  // of the job
  std::vector<std::string> common_environment = {};
  std::vector<std::vector<std::string>> own_environment = {};  // per rank
  std::vector<cpu_set_t> processors = {};                      // per rank, or empty
  int input = -1;                                              // what rank 0 of the world reads; -1: nothing
  Duration grace{};  // if this process dies, and for what the ranks leave behind
  InheritedSignals signals = {};
  rlimit descriptors = {};     // the limit on them, before it was raised
  bool hears_rounds = false;   // the ranks get a pipe for tell_round
  std::span<char> title = {};  // the memory in which this process's arguments lie
};

// All signals must be blocked, and this process a subreaper.
class LocalCrew final : public Crew {
 public:
  explicit LocalCrew(LocalPlan plan);

  void start() override;
  void watch(std::vector<pollfd>& into, Room room) const override;
  void serve(CrewListener& listener, Room room) override;
  // As serve, and reads at most so much output.
  void serve(CrewListener& listener, std::size_t output_bytes_max);
  [[nodiscard]] bool is_gone() const override { return is_guard_gone_; }
  [[nodiscard]] bool is_drained() const { return pipes_.is_drained(); }

  [[nodiscard]] std::string last_call(int rank) const override;
  void ask_where() const override { records_.ask_where(); }
  void dump_calls(const std::string& folder) const override { records_.dump(folder, plan_.first_rank); }
  // What the ranks have written down of their calls.
  [[nodiscard]] const RankRecords& records() const { return records_; }
  void tell_ranks(int rank, const std::string& how) override {
    records_.note_ending(rank - plan_.first_rank, how);
    news_.tell(plan_.id, rank, how);
  }
  // The same, about a rank of another job: these processes have become ranks of that one.
  void tell_ranks_of(std::string_view job, int rank, const std::string& how) const { news_.tell(job, rank, how); }
  // A line for one rank, which says of which job it is to be a rank now. Whether its pipe took it.
  [[nodiscard]] bool tell_round(int rank, std::string_view line) const {
    return rounds_.tell_line(rank - plan_.first_rank, line);
  }
  void signal_ranks(int signal) override;
  void signal_all(int signal) override;
  void end(int signal, Duration grace) override;

 private:
  [[nodiscard]] Guard start_guard() const;
  void hear_guard(CrewListener& listener);
  void hear(const GuardMessage& message, CrewListener& listener) const;
  void lose_guard(CrewListener& listener);
  void tell(const GuardMessage& message);

  LocalPlan plan_;
  RankPipes pipes_;
  RankNews news_;
  RankRecords records_;
  RankNews rounds_;
  Cgroup cgroup_;  // for the case that the guard is lost
  std::optional<Guard> guard_;
  bool is_guard_gone_ = false;
};

// Raises the limit on descriptors, because the pipes of all ranks are open at once. What it was, for the ranks.
rlimit make_room_for_pipes(int ranks);

}  // namespace tutti::launch
