// cause.hpp: why a group broke, in a form that every member can report alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace tutti::control {

struct Cause {
  // In the order in which they are believed when ranks report several at once: what explains the others comes first. A
  // missed deadline is what everybody else sees of any of them. The values travel: never renumber them.
  enum class Kind : std::uint8_t { mismatch = 0, lost = 1, refused = 2, aborted = 3, timeout = 4 };
  Kind kind = Kind::aborted;
  std::vector<int> culprits;   // ranks in the world, lowest first; may be empty
  std::uint64_t sequence = 0;  // the call on the group, where there is one
  std::string text;            // who, what, why, what to try

  friend bool operator==(const Cause&, const Cause&) = default;
};
inline constexpr int cause_kind_count = 5;

// Which of two causes all ranks report, given the ranks they came from.
inline bool comes_first(const Cause& a, int origin_of_a, const Cause& b, int origin_of_b) {
  return std::tie(a.kind, a.culprits, origin_of_a) < std::tie(b.kind, b.culprits, origin_of_b);
}

}  // namespace tutti::control
