// difference.hpp: what ranks say when they find that they did not make the same calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include <tutti/backend.hpp>

#include "control/control.hpp"
#include "group/call_history.hpp"
#include "group/stall.hpp"

namespace tutti {

/// A call as one rank of a group made it: what its signature has as a hash only, and the place in its program, where they are known.
struct CallOf {
  int rank = 0;
  Signature signature{};
  std::string details{}, site{};
};

/// What a request's signature has as a hash only, in words: " of shape (3, 4), axis 1".
std::string details_of(const Request& request);

/// The cause that breaks the group: the same text whichever of the two finds it.
control::Cause difference_between(CallOf own, CallOf theirs);
/// For ranks that differ in a call which neither has in its record any more.
control::Cause difference_before(int rank, int other, std::uint64_t calls);

/// For ranks that end a group after different numbers of calls.
struct CallCount {
  int rank = 0;
  std::uint64_t calls = 0;
};
control::Cause numbers_differ(CallCount left, CallCount ends);

/// A difference of which a peer knows more: it is asked until it answers, or is gone.
struct OpenDifference {
  control::Cause otherwise;  // what this rank knows by itself
  int world_peer = -1;       // −1: nobody can say more
  bool is_certain = false;   // false: the peer may find that the calls were the same after all
  StallProbe question{};
  TimePoint asked_at{};
  /// Asks, if it is time to. False: the peer is gone.
  bool pursue(control::Control& control, TimePoint now);
};

/// The first of their latest calls that was another one here; nothing if those that are known were the same.
struct Difference {
  Signature own{}, theirs{};
};
std::optional<Difference> first_difference(const CallHistory& own, std::span<const Signature> theirs);

/// How far a rank has come in a group, as goodbyes say it.
control::Position position_in(const GroupFacts& facts, const CallDigest& digest);
CallDigest digest_of(const control::Position& position);

}  // namespace tutti
