// failing_calls.hpp: calls of which a transfer failed: whether a rank is lost, or something failed here.
// SPDX-License-Identifier: Apache-2.0
//
// A failed transfer shows that something is wrong, and not what. So nobody is blamed before all whom the call may have been with are known to
// be lost, or have answered a question that was asked after the failure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "group/agreement.hpp"

namespace tutti {

class FailingCalls {
 public:
  FailingCalls(GroupState& state, RunningOperations& running, GroupFailure& failure, CallAgreement& agreement)
      : state_(state), running_(running), failure_(failure), agreement_(agreement) {}

  /// Finds out what goes on, as far as it can be known now. True: the group breaks because of it, or the call has ended.
  bool report(Operation& operation, TimePoint now);
  /// The deadline of a collective came first.
  void time_out(const Operation& failing);

 private:
  [[nodiscard]] std::string text_of(const Operation& failing) const;
  bool report_leaver(Operation& failing, int peer);
  /// Those that it may have been with and that have not been shown to live since: ranks in the group.
  [[nodiscard]] std::vector<int> not_known_to_live(const Operation& failing) const;
  void ask_for_life(Operation& failing, std::span<const int> ranks, TimePoint now);

  GroupState& state_;
  RunningOperations& running_;
  GroupFailure& failure_;
  CallAgreement& agreement_;
};

}  // namespace tutti
