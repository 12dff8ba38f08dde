// shared_limits.hpp: the sizes by which shared memory chooses its path; part of the table, the same on every rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tutti {

inline constexpr std::int64_t inline_room_bytes = 560;  // what fits beside a flag

/// They change how bytes move, never the order of a reduction.
struct SharedLimits {
  /// Upper limit for messages in inline slots, between two ranks. 0: decided by the processor; the faster cache lines
  /// move between cores, the larger.
  std::int64_t inline_bytes_max = 0;
  std::int64_t slot_bytes = 128 << 10;   // of each of a rank's slots, four or eight; the largest chunk
  std::int64_t chunk_bytes = 128 << 10;  // arrays are cut into chunks of about this size, several in flight
  /// … for rooted verbs, at most: with smaller chunks root and leaves start to overlap sooner, and the chunks stay in
  /// their caches.
  std::int64_t one_way_chunk_bytes = 64 << 10;
  std::int64_t alternating_chunk_bytes = 32 << 10;  // … and for exchanges of two ranks (alternating buffers)
  /// Up to here, in bytes of all ranks together, every rank reads what all others published (one-shot). Beyond, each
  /// slice of a slot goes to one reader, which reduces it with the same slice of the other slots and writes the result
  /// back (two-shot).
  std::int64_t one_shot_bytes_max = 4 << 10;
  std::int64_t one_shot_bytes_max_alternating = 64 << 10;  // … of two ranks, with alternating buffers
  std::int64_t one_shot_bytes_max_oversubscribed =
      128 << 10;  // … where ranks share cores: waiting for others costs most there
  /// From here on members first exchange where their arrays lie, and then read (and, in arenas, write) them in place.
  std::int64_t direct_copy_bytes_min = 64 << 10;  // what one member reads from another
  /// … from memory outside the arenas: for larger arrays slots are faster, as their content comes from the caches.
  std::int64_t read_bytes_max = 8 << 20;
  /// … for scatter: by several ranks only if the root's array is at least this large, without an upper limit.
  std::int64_t read_scattered_bytes_min = 2 << 20;
  /// … by the two ranks of an all_gather, all_to_all or scatter only if a block is at least this large. 0: decided by
  /// the processor; never, where cache lines move between cores faster than the kernel copies.
  std::int64_t read_by_two_bytes_min = 0;
  std::int64_t direct_reduce_bytes_min = 256 << 10;  // of a reduction, when all arrays lie in arenas
  /// Larger results are written with non-temporal stores, except those in place and of broadcast. 0: if the arrays of
  /// all ranks fill more than half of the last-level cache.
  std::int64_t stream_bytes_min = 0;
  std::int64_t stream_gather_bytes_min = 8 << 20;  // … of gather, where only the root writes
  friend bool operator==(const SharedLimits&, const SharedLimits&) = default;
};

/// Each limit by its name in a table's text, and its valid range.
struct SharedLimit {
  std::string_view name;
  std::int64_t SharedLimits::*value;
  std::int64_t least;
  std::int64_t most;
};
inline constexpr std::int64_t any_bytes = INT64_MAX;
inline constexpr std::array<SharedLimit, 15> shared_limits = {{
    {"inline_bytes_max", &SharedLimits::inline_bytes_max, 0, inline_room_bytes},
    {"slot_bytes", &SharedLimits::slot_bytes, 4 << 10, 64 << 20},  // committed for every rank of every group
    {"chunk_bytes", &SharedLimits::chunk_bytes, 4 << 10, 64 << 20},
    {"one_way_chunk_bytes", &SharedLimits::one_way_chunk_bytes, 4 << 10, 64 << 20},
    {"alternating_chunk_bytes", &SharedLimits::alternating_chunk_bytes, 4 << 10, 64 << 20},
    {"one_shot_bytes_max", &SharedLimits::one_shot_bytes_max, 0, any_bytes},
    {"one_shot_bytes_max_alternating", &SharedLimits::one_shot_bytes_max_alternating, 0, any_bytes},
    {"one_shot_bytes_max_oversubscribed", &SharedLimits::one_shot_bytes_max_oversubscribed, 0, any_bytes},
    {"direct_copy_bytes_min", &SharedLimits::direct_copy_bytes_min, 4 << 10, any_bytes},
    {"read_bytes_max", &SharedLimits::read_bytes_max, 0, any_bytes},
    {"read_scattered_bytes_min", &SharedLimits::read_scattered_bytes_min, 0, any_bytes},
    {"read_by_two_bytes_min", &SharedLimits::read_by_two_bytes_min, 0, any_bytes},
    {"direct_reduce_bytes_min", &SharedLimits::direct_reduce_bytes_min, 4 << 10, any_bytes},
    {"stream_bytes_min", &SharedLimits::stream_bytes_min, 0, any_bytes},
    {"stream_gather_bytes_min", &SharedLimits::stream_gather_bytes_min, 0, any_bytes},
}};

}  // namespace tutti
