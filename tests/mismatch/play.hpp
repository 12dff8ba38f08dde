// play.hpp: runs a program with ranks as threads, and records how it ended on each rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "errors/outcomes.hpp"
#include "program.hpp"

namespace tutti::mismatch {

/// What one rank saw of one group.
struct Ending {
  using Kind = contract::Outcome::Kind;
  contract::Outcome error{};         // the first one; fine where no call failed
  std::size_t at = 0;                // index of the call that raised it, among the rank's calls of this group
  std::vector<std::string> wrong{};  // data that is not right although its call ended well, bytes that nobody may write
  std::string later{};               // a call after the error that did not raise the same kind
};

struct RankEnding {
  std::string outside{};         // an error in init, in making the groups or in leaving
  std::vector<Ending> groups{};  // by index into Program::groups
};

struct Endings {
  std::vector<RankEnding> ranks{};
  double seconds = 0;
};

/// A call that misses this deadline raises Timeout, which is never right.
inline constexpr auto call_timeout = std::chrono::seconds(15);

Endings play(const Program& program);

std::string_view name_of(Ending::Kind kind);

/// The errors that ranks got, a line each.
std::string describe(const Endings& endings);

}  // namespace tutti::mismatch
