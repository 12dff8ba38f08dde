// parts.hpp: the parts of a group, each built on those before it.
// SPDX-License-Identifier: Apache-2.0
//
// Thread rule: under the runtime's lock.
#pragma once

#include <memory>
#include <utility>

#include "group/agreement.hpp"
#include "group/failure.hpp"
#include "group/group_state.hpp"
#include "group/refusals.hpp"
#include "group/running_operations.hpp"
#include "group/stall_watch.hpp"

namespace tutti {

struct GroupParts {
  GroupParts(std::shared_ptr<Runtime> runtime, GroupFacts facts, OperationListener& listener)
      : state(std::move(runtime), std::move(facts)), running(state, listener) {}

  /// No call is under way, and nothing is known that a new one would have to be compared with.
  [[nodiscard]] bool is_undisturbed() const {
    return running.empty() && !running.is_stopped() && agreement.is_quiet() && refusals.empty();
  }

  GroupState state;                                  // members, numbered calls, prepared calls
  RunningOperations running;                         // the calls under way: their order, their turns, their ends
  GroupFailure failure{state, running};              // the cause that breaks the group, and what that does to its calls
  CallAgreement agreement{state, running, failure};  // whether all members make the same calls
  StallWatch stall_watch{state, running, failure, agreement};  // deadlines and stalls: whom to ask, what to report
  Refusals refusals{state, running};                           // calls that a member takes no part in
  bool is_polled = false;                                      // among the groups that ProgressLoop polls
};

}  // namespace tutti
