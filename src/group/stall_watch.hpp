// stall_watch.hpp: deadlines and stalls: who is asked about a call that takes long, who reports it, and in which words.
// SPDX-License-Identifier: Apache-2.0
//
// Time is passed in. A call that waits for 100 ms asks the ranks that it waits for (stall.hpp). Their answers show calls that differ, and
// name the late rank in a warning or in the error of a missed deadline.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "group/agreement.hpp"
#include "group/failing_calls.hpp"

namespace tutti {

class StallWatch {
 public:
  StallWatch(GroupState& state, RunningOperations& running, GroupFailure& failure, CallAgreement& agreement)
      : state_(state),
        running_(running),
        failure_(failure),
        agreement_(agreement),
        failing_(state, running, failure, agreement) {}

  /// Deadlines, stalls, and transfers that failed.
  void look(TimePoint now);
  void member_left(int world_rank);
  [[nodiscard]] StallAnswer answer(int world_rank, const StallProbe& probe, std::string awaited_elsewhere);
  void take_answer(int world_rank, std::uint64_t question, const StallAnswer& answer, TimePoint now);

 private:
  // Whom to ask, and when.
  void look_at_all(TimePoint now);
  void watch_oldest(TimePoint now);
  void watch_messages(TimePoint now);
  void probe(Operation& operation, const Progress& where, std::size_t limit);
  void ask_some(std::vector<int> ranks, Operation& operation, std::size_t limit);
  void ask_others(const Operation& operation, TimePoint since);
  void tell_that_it_came();
  [[nodiscard]] bool follows_chains(const Operation& operation, TimePoint now) const;
  [[nodiscard]] Progress progress_of(const Operation& operation) const;
  [[nodiscard]] StallMap::Wait wait_of(const Operation& operation, const Progress& where) const;
  /// The operation itself, or the one that it waits behind.
  [[nodiscard]] const Operation& what_holds_up(const Operation& operation) const;

  // What to report.
  void consider_warning(Operation& operation, TimePoint now);
  [[nodiscard]] bool speaks_for_all(const Operation& operation, TimePoint now);
  [[nodiscard]] std::string report(const Operation& operation, TimePoint now, std::string_view what) const;
  void time_out(Operation& operation, TimePoint now);
  void note_stall(const Operation& operation, TimePoint now) const;
  [[nodiscard]] std::string where_the_program_is();

  GroupState& state_;
  RunningOperations& running_;
  GroupFailure& failure_;
  CallAgreement& agreement_;
  FailingCalls failing_;
  bool somebody_left_ = false;  // a member said goodbye
  TimePoint asked_program_at_{};
  // The latest question of each rank about a call that this one has not entered.
  std::map<int, StallProbe> told_to_wait_;
  // Since when the oldest collective has been that, as far as look() saw.
  std::uint64_t watched_sequence_ = ~std::uint64_t{0};
  TimePoint watched_since_{}, looked_at_{};
  // Likewise the message that was started first.
  TimePoint watched_message_{}, message_watched_since_{}, messages_looked_at_{}, next_message_watch_{};
};

}  // namespace tutti
