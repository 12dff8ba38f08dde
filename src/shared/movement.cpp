// movement.cpp: how a collective's arrays travel through the slots.
// SPDX-License-Identifier: Apache-2.0
#include "shared/movement.hpp"

#include <algorithm>

namespace tutti::shared {
namespace {

// What an uneven all_to_all sets aside: a rank does not know how many rounds the others have.
constexpr std::uint64_t unknown_span = 1u << 24;

constexpr std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::int64_t longest_of(const std::vector<std::int64_t>& counts, std::int64_t otherwise) {
  return counts.empty() ? otherwise : *std::max_element(counts.begin(), counts.end());
}

void set_parts(const Spec& spec, Movement& m) {
  const bool at_root = spec.rank == spec.root;
  const bool last = spec.rank + 1 == spec.size;
  const auto to_root = [&] {
    m.leaves = !at_root;
    m.sources = at_root ? Sources::all : Sources::none;
  };
  const auto from_root = [&] {
    m.leaves = at_root;
    m.sources = at_root ? Sources::none : Sources::one;
    m.one = spec.root;
    m.taking = Taking::copy;
  };
  const auto from_all = [&](Taking taking) {
    m.leaves = true;
    m.sources = Sources::all;
    m.taking = taking;
  };
  m.reduce_ranks = spec.size;
  switch (spec.verb) {
    case Verb::all_reduce: from_all(Taking::reduce); break;
    case Verb::reduce:
      to_root();
      m.taking = at_root ? Taking::reduce : Taking::nothing;
      break;
    case Verb::broadcast: from_root(); break;
    case Verb::all_gather: from_all(Taking::copy); break;
    case Verb::gather:
      to_root();
      m.taking = Taking::copy;
      break;
    case Verb::reduce_scatter: from_all(Taking::reduce); break;
    case Verb::scatter: from_root(); break;
    case Verb::all_to_all: from_all(Taking::copy); break;
    case Verb::scan:
    case Verb::exscan:
      m.leaves = !last;
      m.sources = Sources::lower;
      m.taking = Taking::reduce;
      m.reduce_ranks = spec.rank + (spec.verb == Verb::scan ? 1 : 0);
      break;
    case Verb::permute:
      m.taking = Taking::copy;
      for (const auto& [from, to] : spec.pairs) {
        if (from == spec.rank && to != spec.rank) m.leaves = true;
        if (to == spec.rank && from != spec.rank) m.one = from;
      }
      m.sources = m.one < 0 ? Sources::none : Sources::one;
      break;
    default: m.sources = Sources::all; break;  // barrier
  }
  m.in_blocks = takes_blocks(spec.verb);
}

/// Half as many lines travel then; but to answer takes a step more, which counts for small messages.
bool is_answered(const Spec& spec, std::int64_t bytes, const SharedLimits& limits) {
  const bool may_cross = spec.size == 2 && spec.verb == Verb::all_reduce;
  if (bytes * spec.size <= (may_cross ? limits.one_shot_bytes_max_crossed : limits.one_shot_bytes_max)) return false;
  // The other of two is through with many pieces sooner if it only leaves them.
  if (spec.verb == Verb::reduce) return spec.size > 2 || bytes <= 2 * limits.one_way_chunk_bytes;
  return spec.verb == Verb::all_reduce;
}

/// Of a message, or of all its blocks together.
std::int64_t bytes_of_piece(const Spec& spec, const Movement& m, std::int64_t bytes, const SharedLimits& limits) {
  if (m.crosses) return limits.crossed_chunk_bytes;
  constexpr std::int64_t pieces_max = 16;  // of copies: longer ones gain nothing
  const bool copied = spec.verb == Verb::broadcast || spec.verb == Verb::gather;
  const std::int64_t fine = limits.one_way_chunk_bytes;
  const bool one_way = (copied && bytes <= pieces_max * fine) || (spec.verb == Verb::reduce && !m.answers);
  if (!one_way || fine >= limits.chunk_bytes) return limits.chunk_bytes;
  const std::int64_t half = divided_up(bytes, 2 * line_bytes) * line_bytes;
  return std::clamp(half, fine / 32, fine);
}

/// What is read sooner out of a door than out of a slot: the more ranks look at it, the fewer lines.
std::int64_t room_in_door(const Spec& spec, const Movement& m, const SharedLimits& limits) {
  constexpr int many = 8;
  const bool all_read_all = m.leaves && m.sources == Sources::all;
  if (spec.size == 2) return limits.door_bytes_max;
  return all_read_all && spec.size > many ? first_line_bytes : first_lines_bytes;
}

}  // namespace

Part slice_of(int owner, int size, std::int64_t count, std::int64_t element_bytes) {
  const std::int64_t line_elements = line_bytes / element_bytes;
  const std::int64_t each = divided_up(divided_up(count, size), line_elements) * line_elements;
  const std::int64_t begin = std::min(owner * each, count);
  return {begin, std::min(each, count - begin)};
}

Movement movement_of(const Spec& spec, std::int64_t element_bytes, const SharedLimits& limits) {
  Movement m;
  set_parts(spec, m);
  // All ranks know all counts, but for an uneven all_to_all: there everyone knows its own.
  const bool private_counts = spec.verb == Verb::all_to_all && !spec.counts.empty();
  std::int64_t longest = longest_of(spec.counts, spec.count);
  if (private_counts) longest = std::max(longest, longest_of(spec.recv_counts, 0));
  const std::int64_t parts = m.in_blocks && spec.size > 2 ? spec.size : 1;

  m.in_door = !private_counts && longest * element_bytes * parts <= room_in_door(spec, m, limits);
  if (m.in_door) {
    m.chunk = longest;
    m.stride = parts > 1 ? longest * element_bytes : 0;
    return m;
  }
  m.answers = is_answered(spec, longest * element_bytes, limits);
  if (m.answers) m.leaves = true;  // the root's array, too, is needed by the owners of slices
  m.crosses = spec.size == 2 && m.leaves && m.sources == Sources::all && !m.answers && !private_counts;

  const std::int64_t room = limits.slot_bytes / parts / line_bytes * line_bytes;
  const std::int64_t piece = std::clamp(
      bytes_of_piece(spec, m, longest * element_bytes, limits) / parts / line_bytes * line_bytes, line_bytes, room);
  m.stride = parts > 1 ? room : 0;
  m.chunk = piece / element_bytes;
  if (private_counts) {
    m.rounds = std::max<std::int64_t>(1, divided_up(longest, m.chunk));
    m.span = unknown_span;
    return m;
  }
  m.rounds = std::max<std::int64_t>(1, divided_up(longest, m.chunk));
  // Rounds of about the same length, cut between cache lines.
  const std::int64_t line_elements = line_bytes / element_bytes;
  m.chunk = divided_up(divided_up(longest, m.rounds), line_elements) * line_elements;
  m.rounds = std::max<std::int64_t>(1, divided_up(longest, m.chunk));
  m.span = static_cast<std::uint64_t>(m.rounds);
  return m;
}

const char* name_of(const Movement& movement) {
  if (movement.in_door) return "one line over shared memory";
  if (movement.answers) return "two-shot over shared memory";
  return movement.in_blocks ? "blocks through shared memory" : "one-shot over shared memory";
}

}  // namespace tutti::shared
