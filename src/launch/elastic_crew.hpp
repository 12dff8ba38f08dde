// elastic_crew.hpp: ranks of this host that are replaced one by one while the others stay.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: a *slot* is one of the processes that the job was started with, and what took its place later; slots number the lines
// of output. A *round* is a job of its own as far as the ranks can tell: it has an id, a secret, a store and a numbering of the ranks
// that take part. The first round has all slots.
//
// 1. Each slot has a guard of its own. A rank counts as lost once nothing is left of its process and its descendants, so a
//    replacement never meets what it replaces.
// 2. When ranks are lost, a new round begins: replacements are started with its variables, survivors hear of it over a pipe, as one
//    line of variables. What survivors hold of the round before is of no use in it: the secret is another one, so a process
//    that was only slow cannot speak to the new round.
// 3. The store of a round ends when the next begins, so a rank that still waits there for others learns it at once.
// 4. Without replacements left, the round has fewer ranks, as long as there are `ranks_min`.
// 5. A rank that ended with 0 is neither lost nor part of later rounds.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/attempt.hpp"
#include "launch/crew.hpp"
#include "launch/local_crew.hpp"
#include "launch/options.hpp"
#include "launch/rank_environment.hpp"

namespace tutti::launch {

struct ElasticPlan {
  std::string_view name;  // of this program, for messages
  const RunOptions& options;
  const Environment& environment;
  LocalPlan ranks;      // of all slots, without environments
  Placement placement;  // of the first round, without what a meeting says
  std::function<Meeting(int round)> begin_meeting;
};

class ElasticCrew final : public Crew {
 public:
  explicit ElasticCrew(ElasticPlan plan);
  ~ElasticCrew() override;

  void start() override;
  void watch(std::vector<pollfd>& into, Room room) const override;
  [[nodiscard]] TimePoint next_timer() const override { return must_serve_ ? TimePoint::min() : TimePoint::max(); }
  void serve(CrewListener& listener, Room room) override;
  [[nodiscard]] bool is_gone() const override;

  void tell_ranks(int slot, const std::string& how) override;
  void signal_ranks(int signal) override;
  void signal_all(int signal) override;
  void end(int signal, Duration grace) override;

 private:
  enum class State { running, failed, finished };
  struct Slot;
  class SlotListener;

  void begin_round();
  void start_slot(Slot& slot);
  [[nodiscard]] std::string round_line(const Slot& slot) const;
  void replace_lost(CrewListener& listener);
  void give_up(CrewListener& listener);
  [[nodiscard]] std::vector<Slot*> slots_in(State state);
  [[nodiscard]] std::string describe_failures(const std::vector<Slot*>& failed) const;
  void let_streams_end(Slot& slot, CrewListener& listener) const;

  ElasticPlan plan_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::optional<Meeting> meeting_;
  int round_ = 0;
  bool is_ending_ = false;
  bool must_serve_ = false;  // streams that were held back are to end, and no descriptor will say so
};

}  // namespace tutti::launch
