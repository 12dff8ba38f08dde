// flags.hpp: the words by which the members of a group tell each other how far they are.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary. A *execution* is one collective of the group, a *round* moves one chunk of it. A *sequence number* numbers the rounds of all
// executions: call sequence << 26 | step. Sequence numbers of one group only grow, but a rank may leave out executions (refused, cancelled), so
// nobody may conclude from one sequence number that an earlier round took place. Therefore
//   1. "this is here" is told by a flag that *equals* the sequence number of the round;
//   2. "this is over" is told by a flag that has *reached* it.
// Each rank writes its own flags and slots only, but for results.
//
//   inline slots[i]    first flag of an execution: round 0 has been left in the slot, or in the inline slot itself; with the signature's digest
//   ready[s]   a later round has been left in slot s
//   reduced back[s] what the others left for this rank in their slots s in that round has been replaced by its reduce back
//   abandoned[i] this rank gave that execution up: what it lent to the others in place may have changed since
//   taken       this rank reads (or results) nothing any more that belongs to this sequence number or an earlier one
//
// Flags that are written at different times lie 128 bytes apart, as processors fetch lines in pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::intranode {

using SequenceNumber = std::uint64_t;

inline constexpr int step_bits = 26;

/// Sequence numbers may wrap around; those that meet are never far apart.
constexpr bool reached(SequenceNumber seen, SequenceNumber wanted) {
  return static_cast<std::int64_t>(seen - wanted) >= 0;
}

/// `Policy::LongWord` is an atomic word, `Policy::InlineHeader` what lies beside an inline slot's sequence number; `Policy::inline_slots` and
/// `Policy::slots` are their numbers.
template <class Policy>
struct Flags {
  using Word = typename Policy::LongWord;
  struct alignas(256) InlineSlot {
    Word seq{0};
    typename Policy::InlineHeader header;
  };
  struct alignas(128) Line {
    Word seq{0};
  };
  InlineSlot inline_slots[Policy::inline_slots];
  Line ready[Policy::slots];
  Line reduced[Policy::slots];
  Line consumed;
  struct alignas(128) {
    Word seqs[Policy::inline_slots]{};
  } abandoned;
};

}  // namespace tutti::intranode
