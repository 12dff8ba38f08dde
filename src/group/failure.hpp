// failure.hpp: the cause that breaks a group: proposed by one rank, agreed on by all, and raised by every call afterwards.
// SPDX-License-Identifier: Apache-2.0
//
// Once broken, a group stays broken, for the same cause in every later call. Between the proposal and the agreement no call ends.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "control/cause.hpp"
#include "group/group_state.hpp"
#include "group/running_operations.hpp"

namespace tutti {

class GroupFailure {
 public:
  GroupFailure(GroupState& state, RunningOperations& running) : state_(state), running_(running) {}

  /// The members agree on a cause: this one, or another that a rank proposes at about the same time.
  void propose(const control::Cause& cause);
  /// A proposal of this rank's own making: it is the culprit.
  void propose_own(std::uint64_t sequence, std::string text);
  /// The members have agreed: every call under way ends with this cause.
  void break_with(const control::Cause& cause);
  /// Throws if this process is not a member, or the group is broken.
  void check_usable() const;
  [[nodiscard]] bool is_broken() const { return broken_.has_value(); }
  /// A cause is known, but the members have yet to agree on it; null: none.
  [[nodiscard]] const control::Cause* proposed() const { return proposed_ ? &*proposed_ : nullptr; }
  [[nodiscard]] bool is_certain() const { return broken_ || proposed_; }
  /// Whether the members are agreeing on a cause. If that takes too long, this rank's own breaks the group here.
  bool is_agreeing(TimePoint now);
  /// The error of a group that broke because its members made different calls, or because one left before a call that this rank has made;
  /// null: it did not.
  [[nodiscard]] std::exception_ptr difference() const;
  /// Whether a call of the program's has raised why the group is broken, or will.
  [[nodiscard]] bool was_told() const { return was_told_; }

  /// The caller leaves this call by an exception. When this returns, the call has ended and its memory is not touched any more: a
  /// collective breaks the group; a send is withdrawn; a message that was received, or is arriving, is kept for the next receive.
  void interrupt(Operation& operation);
  /// A message under way ends with this error, and its memory is not touched any more; otherwise as an interrupted one. The group goes on.
  void give_up(Operation& message, std::exception_ptr error);
  /// The program no longer waits for any of the calls under way.
  void interrupt_all();
  /// This rank leaves: it has no use for what it would receive.
  void withdraw_receives();

 private:
  [[nodiscard]] std::exception_ptr error_for(const control::Cause& cause, const Operation* operation) const;
  bool give_message_back(Operation& operation);

  GroupState& state_;
  RunningOperations& running_;
  std::optional<control::Cause> broken_, proposed_;
  TimePoint proposed_at_{};
  mutable bool was_told_ = false;
};

}  // namespace tutti
