// transfer_schedule.hpp: how a collective's arrays travel through the slots: pieces, rounds, who hears whom. Pure arithmetic.
// SPDX-License-Identifier: Apache-2.0
//
// A rank's *message* is what it has for the others: one array that all readers read (all_reduce, all_gather, …), or one block
// for each of them (all_to_all, scatter, reduce_scatter), which then share the slot: reader k finds its part at k × stride; of two
// ranks there is but one reader, and the stride is 0.
// Round r carries elements [r × chunk, (r + 1) × chunk) of the message, or of each of its blocks.
//
// Large reductions for all are *reduced back* (steps.hpp): each rank owns a slice of all slots, reduces it, and writes the result back to
// the slots.
#pragma once

#include <cstdint>

#include "plan/plan.hpp"
#include "plan/shared_limits.hpp"

namespace tutti::intranode {

inline constexpr std::int64_t line_bytes = 64;
inline constexpr std::int64_t inline_bytes = inline_room_bytes;  // fit into an inline slot …
inline constexpr std::int64_t four_lines_bytes = 240;            // … so many on its first four lines …
inline constexpr std::int64_t first_lines_bytes = 112;           // … on its first two …
inline constexpr std::int64_t first_line_bytes = 48;             // … and on the line of its sequence number

/// Reductions are done so many bytes at once: what is read and what is written stay in the first cache.
inline constexpr std::int64_t worked_bytes = 8 << 10;

struct Part {  // of an array, in elements
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
/// What `owner` of `size` ranks reduces. Slices end between cache lines, so that no line of a slot is written by one rank and read by
/// two.
Part slice_of(int owner, int size, std::int64_t count, std::int64_t element_bytes);

enum class Sources : std::uint8_t {
  none,
  all,
  lower,
  one
};  // from whom a rank consumes: `lower` are the ranks before it
enum class ConsumeAction : std::uint8_t { nothing, copy, reduce };

struct TransferSchedule {
  bool publishes = false;   // has a message
  bool in_blocks = false;   // … of one block for each reader
  bool is_inline = false;   // … that fits into the inline slot
  bool alternates = false;  // … as the other of two ranks does, in each other's slots
  bool reduces_back =
      false;  // … that is reduced back in slices (two-shot); `sources` then are those whose results are taken
  Sources sources = Sources::none;
  ConsumeAction consume_action = ConsumeAction::nothing;
  int one = -1;             // Sources::one
  int reduce_ranks = 0;     // ConsumeAction::reduce: of ranks 0 … n−1, in this order
  std::int64_t chunk = 0;   // elements
  std::int64_t stride = 0;  // bytes from block to block in the slot
  std::int64_t rounds = 1;  // on this rank
  std::uint64_t span = 1;   // sequence numbers set aside, the same on every rank
};

/// What moves on `spec.rank`. chunk, stride, is_inline, alternates, reduces_back and span are the same on every rank.
TransferSchedule schedule_of(const Spec& spec, std::int64_t element_bytes, const SharedLimits& limits);

/// "one-shot in shared memory".
const char* name_of(const TransferSchedule& schedule);

}  // namespace tutti::intranode
