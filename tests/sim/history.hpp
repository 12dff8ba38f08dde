// history.hpp: what every rank of a scenario saw, as its callers see it. The checker knows nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "side.hpp"

namespace tutti::sim {

enum class Outcome : std::uint8_t {
  pending,  // never ended: the rank was killed, or something hangs
  well,
  refused,  // InvalidArgument, raised by this rank on entry
  mismatch,
  timeout,
  lost,
  aborted,
  other,  // an error of no known kind
};
inline constexpr int outcome_count = 8;
std::string_view name_of(Outcome outcome);

// One call of one rank. Times count from the start of the simulation.
struct Record {
  int rank = 0;  // in the world
  std::size_t group = 0, call = 0;
  Duration started{}, deadline{}, ended{};
  Outcome outcome = Outcome::pending;
  std::string text{};         // of the error
  std::string cause{};        // the text without who reports it in which call: alike on all members
  int lost_rank = -1;         // PeerLost::rank()
  int endings = 0;            // how often the end was told
  bool group_broken = false;  // when it ended
  std::string damage{};       // what was wrong with the arrays when it ended
  std::unique_ptr<Side> side{};
  std::uint64_t fingerprint = 0;    // of the arrays, after the end, overwritten by their owner
  bool changed_afterwards = false;  // once more, at the end of the simulation
};

// The making of a group, on one of its members.
struct CreationRecord {
  int rank = 0;
  std::size_t group = 0;
  Duration deadline{}, ended{};
  bool ended_at_all = false;
  bool failed = false;
  control::Cause cause{};
};

struct History {
  std::deque<Record> calls;
  std::deque<CreationRecord> creations;
  std::vector<bool> killed;  // by rank
  std::set<int> left;        // ranks that said goodbye,
  std::set<int> left_early;  // without making all their calls
  bool complete = false;     // every rank that lives came to the end of its script
  bool out_of_steps = false;
  Duration elapsed{};
  std::uint64_t steps = 0;
  std::uint64_t trace = 0;
};

}  // namespace tutti::sim
