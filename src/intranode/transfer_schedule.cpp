// transfer_schedule.cpp: how a collective's arrays travel through the slots.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/transfer_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::intranode {
namespace {

// What an uneven all_to_all sets aside: a rank does not know how many rounds the others have.
constexpr std::uint64_t unknown_span = 1u << 24;

constexpr std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::int64_t longest_of(const std::vector<std::int64_t>& counts, std::int64_t otherwise) {
  return counts.empty() ? otherwise : *std::max_element(counts.begin(), counts.end());
}

void set_parts(const Spec& spec, TransferSchedule& m) {
  const bool at_root = spec.rank == spec.root;
  const bool last = spec.rank + 1 == spec.size;
  const auto to_root = [&] {
    m.publishes = !at_root;
    m.sources = at_root ? Sources::all : Sources::none;
  };
  const auto from_root = [&] {
    m.publishes = at_root;
    m.sources = at_root ? Sources::none : Sources::one;
    m.one = spec.root;
    m.consume_action = ConsumeAction::copy;
  };
  const auto from_all = [&](ConsumeAction consume_action) {
    m.publishes = true;
    m.sources = Sources::all;
    m.consume_action = consume_action;
  };
  m.reduce_ranks = spec.size;
  switch (spec.verb) {
    case Verb::all_reduce: from_all(ConsumeAction::reduce); break;
    case Verb::reduce:
      to_root();
      m.consume_action = at_root ? ConsumeAction::reduce : ConsumeAction::nothing;
      break;
    case Verb::broadcast: from_root(); break;
    case Verb::all_gather: from_all(ConsumeAction::copy); break;
    case Verb::gather:
      to_root();
      m.consume_action = ConsumeAction::copy;
      break;
    case Verb::reduce_scatter: from_all(ConsumeAction::reduce); break;
    case Verb::scatter: from_root(); break;
    case Verb::all_to_all: from_all(ConsumeAction::copy); break;
    case Verb::scan:
    case Verb::exscan:
      m.publishes = !last;
      m.sources = Sources::lower;
      m.consume_action = ConsumeAction::reduce;
      m.reduce_ranks = spec.rank + (spec.verb == Verb::scan ? 1 : 0);
      break;
    case Verb::permute:
      m.consume_action = ConsumeAction::copy;
      for (const auto& [from, to] : spec.pairs) {
        if (from == spec.rank && to != spec.rank) m.publishes = true;
        if (to == spec.rank && from != spec.rank) m.one = from;
      }
      m.sources = m.one < 0 ? Sources::none : Sources::one;
      break;
    default: m.sources = Sources::all; break;  // barrier
  }
  m.in_blocks = takes_blocks(spec.verb);
}

/// Half as many lines travel then; but to reduce back takes a step more, which counts for small messages.
bool is_reduced(const Spec& spec, std::int64_t bytes, const SharedLimits& limits) {
  const bool may_cross = spec.size == 2 && spec.verb == Verb::all_reduce;
  if (bytes * spec.size <= (may_cross ? limits.one_shot_bytes_max_alternating : limits.one_shot_bytes_max))
    return false;
  // The other of two is through with many pieces sooner if it only leaves them.
  if (spec.verb == Verb::reduce) return spec.size > 2 || bytes <= 2 * limits.one_way_chunk_bytes;
  return spec.verb == Verb::all_reduce;
}

/// Of a message, or of all its blocks together.
std::int64_t bytes_of_piece(const Spec& spec, const TransferSchedule& m, std::int64_t bytes,
                            const SharedLimits& limits) {
  if (m.alternates) return limits.alternating_chunk_bytes;
  constexpr std::int64_t pieces_max = 16;  // of copies: longer ones gain nothing
  const bool copied = spec.verb == Verb::broadcast || spec.verb == Verb::gather;
  const std::int64_t fine = limits.one_way_chunk_bytes;
  const bool one_way = (copied && bytes <= pieces_max * fine) || (spec.verb == Verb::reduce && !m.reduces_back);
  if (!one_way || fine >= limits.chunk_bytes) return limits.chunk_bytes;
  const std::int64_t half = divided_up(bytes, 2 * line_bytes) * line_bytes;
  return std::clamp(half, fine / 32, fine);
}

/// What is read sooner out of an inline slot than out of a slot: the more ranks look at it, the fewer lines.
std::int64_t inline_room(const Spec& spec, const TransferSchedule& m, const SharedLimits& limits) {
  constexpr int many = 8;
  const bool all_read_all = m.publishes && m.sources == Sources::all;
  if (spec.size == 2) return limits.inline_bytes_max;
  return all_read_all && spec.size > many ? first_line_bytes : first_lines_bytes;
}

}  // namespace

Part slice_of(int owner, int size, std::int64_t count, std::int64_t element_bytes) {
  const std::int64_t line_elements = std::max<std::int64_t>(1, line_bytes / element_bytes);
  const std::int64_t each = divided_up(divided_up(count, size), line_elements) * line_elements;
  const std::int64_t begin = std::min(owner * each, count);
  return {begin, std::min(each, count - begin)};
}

TransferSchedule schedule_of(const Spec& spec, std::int64_t element_bytes, const SharedLimits& limits) {
  TransferSchedule m;
  set_parts(spec, m);
  // All ranks know all counts, but for an uneven all_to_all: there everyone knows its own.
  const bool private_counts = spec.verb == Verb::all_to_all && !spec.counts.empty();
  std::int64_t longest = longest_of(spec.counts, spec.count);
  if (private_counts) longest = std::max(longest, longest_of(spec.recv_counts, 0));
  const std::int64_t parts = m.in_blocks && spec.size > 2 ? spec.size : 1;

  m.is_inline = !private_counts && longest * element_bytes * parts <= inline_room(spec, m, limits);
  if (m.is_inline) {
    m.chunk = longest;
    m.stride = parts > 1 ? longest * element_bytes : 0;
    return m;
  }
  m.reduces_back = is_reduced(spec, longest * element_bytes, limits);
  if (m.reduces_back) m.publishes = true;  // the root's array, too, is needed by the owners of slices
  m.alternates = spec.size == 2 && m.publishes && m.sources == Sources::all && !m.reduces_back && !private_counts;

  const std::int64_t room = limits.slot_bytes / parts / line_bytes * line_bytes;
  const std::int64_t piece = std::clamp(
      bytes_of_piece(spec, m, longest * element_bytes, limits) / parts / line_bytes * line_bytes, line_bytes, room);
  m.stride = parts > 1 ? room : 0;
  if (element_bytes > room)
    throw Error(fmt::format(
        "elements of {} bytes are larger than the {} bytes of shared memory that {} ranks have for each of them; use "
        "larger slots (slot_bytes in the table)",
        element_bytes, room, spec.size));
  m.chunk = std::max<std::int64_t>(1, piece / element_bytes);
  if (private_counts) {
    m.rounds = std::max<std::int64_t>(1, divided_up(longest, m.chunk));
    m.span = unknown_span;
    return m;
  }
  m.rounds = std::max<std::int64_t>(1, divided_up(longest, m.chunk));
  // Rounds of about the same length, cut between cache lines.
  const std::int64_t line_elements = std::max<std::int64_t>(1, line_bytes / element_bytes);
  m.chunk = std::min(m.chunk, divided_up(divided_up(longest, m.rounds), line_elements) * line_elements);
  m.rounds = std::max<std::int64_t>(1, divided_up(longest, m.chunk));
  m.span = static_cast<std::uint64_t>(m.rounds);
  return m;
}

const char* name_of(const TransferSchedule& schedule) {
  if (schedule.is_inline) return "one line over shared memory";
  if (schedule.reduces_back) return "two-shot over shared memory";
  return schedule.in_blocks ? "blocks through shared memory" : "one-shot over shared memory";
}

}  // namespace tutti::intranode
