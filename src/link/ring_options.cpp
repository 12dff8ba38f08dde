// ring_options.cpp: what is chosen about rings and cells, by the number of ranks on a host.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <tutti/error.hpp>
#include <tutti/link.hpp>

#include "link/ring.hpp"
#include "link/ring_control_block.hpp"

namespace tutti::link {

void check(const RingOptions& options) {
  const auto reject = [](const char* name, std::int64_t value, const char* range) {
    throw InvalidArgument(fmt::format("shared-memory option {} = {} is out of range: {}", name, value, range));
  };
  const auto ring_bytes = static_cast<std::int64_t>(options.ring_bytes);
  if (ring_bytes < 4096 || ring_bytes > (1 << 30) || !std::has_single_bit(options.ring_bytes)) {
    reject("ring_bytes", ring_bytes, "4 KiB to 1 GiB, a power of two");
  }
  if (options.chunk_bytes < 64) reject("chunk_bytes", options.chunk_bytes, "64 or more");
  if (options.eager_bytes_max < 0) reject("eager_bytes_max", options.eager_bytes_max, "0 or more");
  // An eager message goes in as a whole, also while the reader has not told of the last eighth it read.
  const std::int64_t chunk_room = options.chunk_bytes + 4 * static_cast<std::int64_t>(line_bytes);
  if (options.eager_bytes_max > ring_bytes ||
      chunk_room * (options.eager_bytes_max / options.chunk_bytes + 3) > ring_bytes / 8 * 7) {
    reject("ring_bytes", ring_bytes, "room for one eager message and two chunks at least");
  }
  if (options.fragment_bytes_max < 64) reject("fragment_bytes_max", options.fragment_bytes_max, "64 or more");
  if (options.credit_bytes < 2 * credit_cost(options.eager_bytes_max)) {
    reject("credit_bytes", options.credit_bytes, "room for two eager messages at least");
  }
  if (options.cells > 0 && (options.cell_bytes < line_bytes || options.cell_bytes % line_bytes != 0))
    reject("cell_bytes", static_cast<std::int64_t>(options.cell_bytes), "whole lines of 128 bytes");
  if (options.bulk_cells > options.cells)
    reject("bulk_cells", static_cast<std::int64_t>(options.bulk_cells), "at most as many as there are cells");
  if (options.get_bytes_per_poll < 1) reject("get_bytes_per_poll", options.get_bytes_per_poll, "1 or more");
}

RingOptions ring_options_for(int ranks, bool oversubscribed) {
  RingOptions options;
  if (oversubscribed) return options;
  constexpr std::uint64_t least = 128 << 10, most = 1 << 20, of_all = 4 << 20;
  options.ring_bytes = std::clamp(std::bit_floor(of_all / static_cast<std::uint64_t>(ranks)), least, most);
  // Asking first costs most where ranks wait for each other in a circle. All of a message has to fit into the ring, though.
  options.eager_bytes_max = options.ring_bytes > least ? 128 << 10 : 32 << 10;
  options.get_bytes_max = 0;
  // Each piece costs a round of cache lines, which shows most where the cores are far from each other; and the shorter the pieces are,
  // the sooner the receiver begins to copy. docs/performance_tables.md has what 16 and 64 KiB take.
  options.chunk_bytes = 24 << 10;
  options.fragment_bytes_max = static_cast<std::int64_t>(options.ring_bytes) / 8;
  options.cell_bytes = static_cast<std::size_t>(options.fragment_bytes_max);
  // As many as messages may be sent before one is received: those beyond go through the ring, at half the speed and less. What long
  // messages have under way has to stay in the caches, though.
  options.bulk_cells = 16;
  options.cells = ranks <= 4 ? 64 : options.bulk_cells;
  return options;
}

}  // namespace tutti::link
