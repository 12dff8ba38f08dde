// ring_control_block.hpp: where the ranks of a host find each other's rings, and what can be chosen about them.
// SPDX-License-Identifier: Apache-2.0
//
// Every rank has a control block in its arena with one entry per rank of the world, written by its owner alone and read by that rank
// alone. What belongs to both directions of a pair is therefore never written by both.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "shm/arena.hpp"

namespace tutti::link {

// The same on all ranks of a host.
struct RingOptions {
  std::int64_t eager_bytes_max = 16 << 10;  // larger messages are announced, and come when they are asked for
  std::int64_t credit_bytes = 2 << 20;      // what one peer may pile up at another before it is received
  std::uint64_t ring_bytes = 128 << 10;     // per ordered pair that talks
  std::int64_t chunk_bytes = 4 << 10;  // in which an eager message passes through the ring: both sides copy at once
  std::int64_t fragment_bytes_max = 16 << 10;  // of a message that was asked for; at most an eighth of the ring
  std::int64_t get_bytes_max =
      std::numeric_limits<std::int64_t>::max();  // larger messages are not read by the receiver
  std::int64_t get_bytes_per_poll = 1 << 20;
  std::size_t cells = 0;  // of each rank, in which long payloads travel (cells.hpp); none: they go through the ring
  std::size_t bulk_cells = 0;  // as many of them may be taken by parts of messages that were asked for
  std::size_t cell_bytes = 16 << 10;
  bool cross_memory = true;  // false: never process_vm_readv, even where it is permitted
};

// For so many ranks of a host. Where each has a core of its own, two copies at the same time, through a ring that stays in the caches,
// take less time than one by the system.
RingOptions ring_options_for(int ranks, bool oversubscribed);

// InvalidArgument that names the option which makes no sense.
void check(const RingOptions& options);

struct RingControl {
  // Of the owner's ring to the reader; 0: none yet. Stored once, with release order.
  alignas(64) std::atomic<std::uint64_t> ring_offset;
  // Of the owner's cells; the same for all readers, and 0 likewise.
  std::atomic<std::uint64_t> cells_offset;
  // Of the reader's ring to the owner: how far it was read.
  alignas(64) std::atomic<std::uint64_t> read_lines;
};
static_assert(sizeof(RingControl) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

// Makes this rank's control block; the offset goes to the other ranks of the host. It lives as long as the arena.
std::uint64_t lay_out_control_block(shm::Arena& arena, int world_size);
inline constexpr std::uint64_t no_control_block_offset = ~std::uint64_t{0};

}  // namespace tutti::link
