// running_operations.hpp: the calls of a group that are under way: which of them may begin, how they advance, how they end.
// SPDX-License-Identifier: Apache-2.0
//
// Operations run side by side, in the order of their numbers where their memory overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "group/group_state.hpp"
#include "group/operation.hpp"
#include "group/under_way.hpp"

namespace tutti {

/// What its group does when a call of it fails or ends.
class OperationListener {
 public:
  virtual void went_wrong(Operation& operation, const std::exception_ptr& thrown) = 0;
  virtual void collective_ended() = 0;

 protected:
  ~OperationListener() = default;
};

class RunningOperations {
 public:
  RunningOperations(GroupState& state, OperationListener& listener) : state_(state), listener_(listener) {}

  [[nodiscard]] bool empty() const { return collectives_.empty() && messages_.empty(); }
  [[nodiscard]] const CallQueue& collectives() const { return collectives_; }
  [[nodiscard]] MessageSet& messages() { return messages_; }
  [[nodiscard]] const MessageSet& messages() const { return messages_; }
  /// The collective of that number, if it has not ended.
  [[nodiscard]] Operation* find(std::uint64_t sequence) const { return collectives_.find(sequence); }
  [[nodiscard]] std::vector<std::shared_ptr<Operation>> all() const;
  /// The one that was started first, besides `except`; null: none.
  [[nodiscard]] const Operation* oldest(const Operation* except) const;

  /// An operation to fill in.
  [[nodiscard]] std::shared_ptr<Operation> take();
  /// What was written down of it; 0: nothing.
  void note_record(Operation& operation, std::uint64_t number, const record::CallShape& shape) const;
  /// From here on its deadline, stalls and failures are watched.
  void track(const std::shared_ptr<Operation>& operation, std::shared_ptr<GroupCore> group, Duration timeout);
  /// Whether the collective has to wait until earlier ones have ended, or fewer are before it.
  [[nodiscard]] bool must_wait(std::uint64_t place) const;
  void launch(Operation& operation);
  /// Does what can be done now for the collectives.
  void advance_collectives();
  /// A transfer of it failed: the verdict of the control network is awaited.
  struct TransferProblem {
    std::string reason;
    std::vector<int> world_peers;  // the one that it was with, or all that it may have been with
    bool does_not_fit = false;     // a message of another size than was expected; otherwise a link broke
  };
  void mark_failing(Operation& operation, TransferProblem problem);
  /// `error` may be null.
  void end(Operation& operation, std::exception_ptr error);

  /// The group is about to break: no call ends well any more, so that this rank does not go on as if nothing had happened.
  void stop() { is_stopped_ = true; }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }

  [[nodiscard]] bool has_failing() const { return failing_count_ > 0; }
  /// Not after the deadline of any operation; may be that of one which has ended.
  [[nodiscard]] TimePoint earliest_deadline() const { return earliest_deadline_; }
  void set_earliest_deadline(TimePoint deadline) { earliest_deadline_ = deadline; }

 private:
  void note_way(const Operation& operation) const;
  void say_unfinished(const Operation& operation, const std::exception_ptr& error) const;

  // Only so many collectives, the oldest, have been begun and are polled; those behind them wait. So a round of progress costs the
  // same however many are under way, and so do the buffers. Enough to keep links busy with small calls.
  // No deadlock: every rank begins its calls in the order of their numbers. Of the calls that some rank has not ended, take the
  // lowest: on each rank it is either over, with all its messages sent, or it is the oldest, and so has been begun.
  static constexpr std::uint64_t window = 64;
  static constexpr std::size_t pool_limit = 1024;  // operations that are kept for reuse

  GroupState& state_;
  OperationListener& listener_;
  CallQueue collectives_;
  MessageSet messages_;
  bool is_stopped_ = false;
  bool turns_changed_ = false;     // one that waits for its turn may no longer have to
  std::size_t failing_count_ = 0;  // operations whose transfers failed
  TimePoint earliest_deadline_ = TimePoint::max();
  std::vector<std::shared_ptr<Operation>> pool_;
  std::size_t next_pooled_ = 0;
};

}  // namespace tutti
