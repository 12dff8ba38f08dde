// shared_limits.hpp: the sizes by which shared memory chooses its way. Part of the table, the same on every rank of a group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tutti {

inline constexpr std::int64_t inline_room_bytes = 560;  // what fits beside a flag

/// They change how bytes move, never the order of a reduction.
struct SharedLimits {
  /// Messages of two ranks lie beside their flag up to here. 0: as the processor is; the faster lines go from core to core, the more.
  std::int64_t inline_bytes_max = 0;
  std::int64_t slot_bytes =
      128 << 10;  // of each of a rank's slots, four or eight; the largest piece that moves at once
  std::int64_t chunk_bytes = 128 << 10;  // arrays are cut into pieces of about this size, some in flight at a time
  /// … but for what goes to a root or comes from it: in pieces of this size at most both sides are at it sooner, and stay in
  /// their caches.
  std::int64_t one_way_chunk_bytes = 64 << 10;
  std::int64_t alternating_chunk_bytes = 32 << 10;  // … and for what two ranks exchange
  /// Up to here, in bytes of all ranks together, everyone reads what all others left; beyond, lines of a slot go to one reader,
  /// who reduces what is there with that of the other slots, and answers in the same place.
  std::int64_t one_shot_bytes_max = 4 << 10;
  std::int64_t one_shot_bytes_max_alternating = 64 << 10;  // … of two ranks, who write where they have read last
  std::int64_t one_shot_bytes_max_oversubscribed =
      128 << 10;  // … where ranks share cores: to wait for others costs most there
  /// From here on members first tell each other where their arrays lie, and then read (and, in arenas, write) them there.
  std::int64_t direct_copy_bytes_min = 64 << 10;  // what one member takes of another
  /// … out of memory that is not in an arena: larger, slots are faster, whose content is taken out of the caches.
  std::int64_t read_bytes_max = 8 << 20;
  /// … but for scatter: by several ranks only if the root's array is not smaller, and however large it is.
  std::int64_t read_scattered_bytes_min = 2 << 20;
  /// … and by the two ranks of an all_gather, all_to_all or scatter only if a block is not smaller. 0: as the processor is; where
  /// lines go from core to core faster than the kernel copies, never.
  std::int64_t read_by_two_bytes_min = 0;
  std::int64_t direct_reduce_bytes_min = 256 << 10;  // of a reduction, when all arrays lie in arenas
  /// Larger results are written past the caches, but for those in place and of broadcast. 0: if the arrays of all ranks fill more
  /// than half of the last cache.
  std::int64_t stream_bytes_min = 0;
  std::int64_t stream_gather_bytes_min = 8 << 20;  // … of gather: its root is the only one who writes
  friend bool operator==(const SharedLimits&, const SharedLimits&) = default;
};

/// Each limit by the name it has in a table's text, and what may be asked of it.
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
