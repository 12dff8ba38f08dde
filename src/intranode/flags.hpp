// flags.hpp: the words by which the members of a group tell each other how far they are.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary. An *execution* is one collective of the group; a *round* moves one chunk of it. A *sequence number* numbers the rounds of all
// executions: call number << 26 | step. The sequence numbers of one group only grow, but a rank may leave out executions (refused,
// cancelled). So a sequence number does not tell whether an earlier round took place. Therefore
//   1. "this is here" is told by a flag that *equals* the sequence number of the round;
//   2. "this is over" is told by a flag that has *reached* it.
// Each rank writes its own flags and slots only, except where it reduces back.
//
//   inline_slots[i]   round 0 has been published, in the slot or in the inline slot itself; beside the flag lies the signature's digest
//   ready[s]          a later round has been published in slot s
//   reduced[s]        what the others published for this rank in their slots s has been replaced by the result
//   abandoned.seqs[i] this rank gave that execution up: the arrays that it lent to the others may have changed since
//   consumed          this rank no longer reads (or reduces back) anything of this sequence number or an earlier one
//
// Flags that are written at different times lie 128 bytes apart, as processors fetch lines in pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::intranode {

using SequenceNumber = std::uint64_t;

inline constexpr int step_bits = 26;

/// Sequence numbers may wrap around; two that are compared are never far apart.
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
