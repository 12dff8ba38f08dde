// agreement.hpp: what ranks say when they find that they did not make the same calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include <tutti/backend.hpp>

#include "control/control.hpp"
#include "group/call_history.hpp"

namespace tutti {

/// A call as one rank of a group made it; its shape, where that is what differs, and the place in its program, where they are known.
struct CallOf {
  int rank = 0;
  Signature signature{};
  std::string shape{}, site{};
};

/// The cause that breaks the group: the same text whichever of the two finds it.
control::Cause difference_between(CallOf own, CallOf theirs);
/// For ranks that differ in a call which neither has in its record any more.
control::Cause difference_before(int rank, int other, std::uint64_t calls);

/// The first of their latest calls that was another one here; nothing if those that are known were the same.
struct Difference {
  Signature own{}, theirs{};
};
std::optional<Difference> first_difference(const CallHistory& own, std::span<const Signature> theirs);

/// What is left of a group whose handle is gone, until the process leaves: others may find only then that calls differed.
struct ClosedGroup {
  GroupFacts facts{};
  CallHistory calls{};
};

}  // namespace tutti
