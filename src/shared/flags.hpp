// flags.hpp: the words by which the members of a circle tell each other how far they are.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary. A *body* is one collective of the circle, a *round* moves one chunk of it. A *stamp* numbers the rounds of all
// bodies: call sequence << 26 | step. Stamps of one circle only grow, but a rank may leave out bodies (refused, cancelled), so
// nobody may conclude from one stamp that an earlier round took place. Therefore
//   1. "this is here" is told by a flag that *equals* the stamp of the round;
//   2. "this is over" is told by a flag that has *reached* it.
// Each rank writes its own flags and slots only, but for answers.
//
//   doors[i]    first flag of a body: round 0 has been left in the slot, or in the door itself; with the signature's digest
//   posted[s]   a later round has been left in slot s
//   answered[s] what the others left for this rank in their slots s in that round has been replaced by its answer
//   abandoned[i] this rank gave that body up: what it lent to the others in place may have changed since
//   taken       this rank reads (or answers) nothing any more that belongs to this stamp or an earlier one
//
// Flags that are written at different times lie 128 bytes apart, as processors fetch lines in pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::shared {

using Stamp = std::uint64_t;

inline constexpr int step_bits = 26;

/// Stamps may wrap around; those that meet are never far apart.
constexpr bool reached(Stamp seen, Stamp wanted) { return static_cast<std::int64_t>(seen - wanted) >= 0; }

/// `Policy::LongWord` is an atomic word, `Policy::Greeting` what lies beside a door's stamp; `Policy::doors` and
/// `Policy::slots` are their numbers.
template <class Policy>
struct Flags {
  using Word = typename Policy::LongWord;
  struct alignas(256) Door {
    Word stamp{0};
    typename Policy::Greeting greeting;
  };
  struct alignas(128) Line {
    Word stamp{0};
  };
  Door doors[Policy::doors];
  Line posted[Policy::slots];
  Line answered[Policy::slots];
  Line taken;
  struct alignas(128) {
    Word stamps[Policy::doors]{};
  } abandoned;
};

}  // namespace tutti::shared
