// check.hpp: whether a history keeps the library's promises. Knows the scenario, and nothing of the library's internals.
// SPDX-License-Identifier: Apache-2.0
//
// Safety:
//  1. A call that ends well has exactly the right data. Inputs and what lies around the arrays are never written.
//  2. A call ends once. Its arrays are not touched afterwards, and its owner may overwrite them at once.
//  3. PeerLost names a rank that has a fault, is an end of a broken link, or has left. Timeout names such a rank, or one that had
//     not made the call. Mismatch, Aborted and refusals are reported only where the script has one.
//  4. All members of a broken group report the same cause, word by word. After a single fault all groups name the same
//     lost rank.
//  5. A mismatch is reported by every member that has calls left, within a second. A refusal leaves the group usable.
// Liveness:
//  6. Every call ends by its deadline and the time that its members take to agree on why (grace_of).
#pragma once

#include <string>
#include <vector>

#include "history.hpp"
#include "scenario.hpp"

namespace tutti::sim {

// What was violated, as text; empty if nothing was.
std::vector<std::string> check(const Scenario& scenario, const History& history);

// From a call's deadline to its end on this rank, at the latest.
Duration grace_of(const Scenario& scenario, int rank);

}  // namespace tutti::sim
