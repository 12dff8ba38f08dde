// verdicts.hpp: turns the accusations of ranks into one decision for all. control.hpp has the argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <tutti/clock.hpp>

#include "control/cause.hpp"
#include "control/message.hpp"

namespace tutti::control {

struct VerdictTimes {
  Duration settle = std::chrono::milliseconds(30);  // from the first fact to the decision
  // A launcher that watches the processes says how one has ended: so long it is waited for, unless the accused answers.
  Duration launcher_word{};
  Duration takeover = std::chrono::milliseconds(60);   // more, before an accused decider that is silent is passed over
  Duration patience = std::chrono::milliseconds(250);  // an abort undecided for so long: each rank for itself
  Duration backstop = std::chrono::seconds(5);         // a loss undecided for so long: each rank for itself
};

// Collects facts and decides. Does no I/O; the time is passed to each call.
class Verdicts {
 public:
  Verdicts(int rank, int size, const VerdictTimes& times);

  // Facts, as they arrive; those of this rank, too.
  void suspect(TimePoint now, int accuser, const Suspect& suspect);
  void alive(TimePoint now, int rank, Duration away);
  void propose(TimePoint now, int origin, Proposal proposal);
  // The rank is about to leave: it no longer decides. It can still be lost.
  void retire(int rank) { retired_.insert(rank); }
  // The rank was decided to be lost, or left: nothing about it or from it is pending any more.
  void remove(int rank);
  // This group's cause is known; false if it was before.
  bool settle(std::uint64_t group, std::uint32_t epoch);

  // True if a rank, perhaps this one, has proposed to break this group already, or it is broken.
  [[nodiscard]] bool proposed(std::uint64_t group, std::uint32_t epoch) const;

  [[nodiscard]] bool has_proposals() const { return !aborts_.empty(); }
  [[nodiscard]] bool is_accused(int rank) const { return suspicions_.contains(rank); }
  // What this rank is to decide now, one at a time: as the decider for all, or for itself when nobody decides.
  struct Decision {
    std::variant<Lost, Broken> verdict;
    bool for_all = true;
  };
  [[nodiscard]] std::optional<Decision> decide(TimePoint now) const;
  // The next time at which decide() may return something.
  [[nodiscard]] TimePoint next_timer(TimePoint now) const;

 private:
  using Group = std::pair<std::uint64_t, std::uint32_t>;
  struct Suspicion {
    TimePoint since{};
    std::map<int, std::string> accusers;  // and their reasons
    bool is_witnessed = false;            // by one of them, who had a link to the accused
    std::optional<std::string> end;       // what the launcher has seen: the accused's process is gone
  };
  struct Sign {  // of life
    TimePoint at{};
    TimePoint answered{};  // an accusation
    Duration away{};       // it knows that it was stopped for so long
  };
  struct Abort {
    TimePoint since{};
    int origin = 0;
    Cause cause;
  };

  [[nodiscard]] bool decides(TimePoint now) const;
  // When it may be decided: no fact that is still on its way would change the decision.
  [[nodiscard]] TimePoint ripe_at(int accused, const Suspicion& suspicion) const;
  // The sign of life that answers this suspicion; nullptr: nobody answered.
  [[nodiscard]] const Sign* answer(int accused, const Suspicion& suspicion) const;
  [[nodiscard]] TimePoint passed_over_at(int accused, const Suspicion& suspicion) const;
  [[nodiscard]] bool passed_over(int rank, TimePoint now) const;
  [[nodiscard]] Lost judge(int accused, const Suspicion& suspicion) const;

  int rank_;
  VerdictTimes times_;
  std::map<int, Suspicion> suspicions_;  // by accused
  std::map<int, Sign> signs_;
  std::set<int> removed_, retired_;
  std::map<Group, Abort> aborts_;  // the best proposal so far
  std::set<Group> settled_;
};

}  // namespace tutti::control
