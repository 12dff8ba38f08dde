// program.hpp: one random program as a value: which calls each rank makes on which group, and where the ranks differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract_case.hpp"
#include "world.hpp"

namespace tutti::mismatch {

struct ProgramCall {
  int group = 0;  // index into Program::groups
  contract::Case what{};
};

/// A rank that comes late: the others' calls pile up where it has not been yet.
struct Pause {
  std::size_t before = 0;  // index among the rank's calls
  std::chrono::milliseconds length{};
};

/// How the calls of several groups are mixed. A rank that misses a blocking call of one group and enters the next group's can
/// deadlock with the others, which is a Timeout by right; the styles leave that out, so that Timeout is never right.
enum class Style : std::uint8_t {
  one_group,  // blocking and asynchronous calls, any mutation
  posted,     // several groups: every call is asynchronous and waited for at the end, group by group; any mutation
  in_step,  // several groups, blocking and asynchronous: all ranks enter the same calls of each group in the same order
};

struct Program {
  std::uint64_t seed = 0;
  contract::WorldKind kind = contract::WorldKind::shm;
  Style style = Style::one_group;
  int size = 2;
  std::vector<std::vector<int>>
      groups{};       // members as ranks of the world, in group order; the first group is the world
  int works_max = 0;  // asynchronous calls that a rank has in flight before it waits for the oldest
  /// Ends with two closing calls (a small all_reduce) per group. The second can only end well where every rank's first did, so a difference shows on
  /// every rank as an error. Without them a rank may leave before it hears of the difference.
  bool closes = true;
  std::vector<std::vector<ProgramCall>> calls{};  // by rank
  std::vector<Pause> pauses{};                    // by rank
  std::vector<std::string> mutations{};           // in words
};

Program draw_program(std::uint64_t seed);
std::string describe(const Program& program);

/// The rank's calls on one group, in order.
std::vector<contract::Case> calls_on(const Program& program, int rank, int group);
/// Whether two ranks that make these calls under the same number ask for the same.
bool same_call(const contract::Case& a, const contract::Case& b, int group_size);

struct Difference {
  std::size_t index = 0;        // of the first call of the group that differs
  int one = 0, other = 0;       // ranks in the world
  bool missing = false;         // one of the two has no call of that index
  bool lengths_differ = false;  // some ranks make more calls than others
};
/// Nothing: every member makes the same calls.
std::optional<Difference> first_difference(const Program& program, int group);

}  // namespace tutti::mismatch
