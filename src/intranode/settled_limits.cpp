// settled_limits.cpp: what a table leaves open, decided by the machine and the members.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/settled_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "intranode/transfer_schedule.hpp"

namespace tutti::intranode {
namespace {

// Of this machine; some virtual ones do not tell.
std::int64_t last_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (const long told = sysconf(_SC_LEVEL3_CACHE_SIZE); told > 0) return told;
#endif
  return 32 << 20;
}

// Whether a line comes from another core sooner than the kernel reads it in another process. So it was on the machine with AMD's
// processors, as long as both cores had a cache in common; on those with Intel's it came out even. There, too, messages of more
// than four lines were faster through a slot, which the processor fetches ahead.
bool are_lines_quick() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

}  // namespace

SharedLimits settled(SharedLimits limits, int size) {
  // Every member has at least one line of each slot.
  limits.slot_bytes = std::max<std::int64_t>(limits.slot_bytes, std::int64_t{64} * size);
  limits.slot_bytes = (limits.slot_bytes + 127) / 128 * 128;
  limits.chunk_bytes = std::clamp<std::int64_t>(limits.chunk_bytes, 64, limits.slot_bytes);
  if (limits.stream_bytes_min == 0) limits.stream_bytes_min = last_cache_bytes() / 4 / size;  // inputs and outputs
  if (limits.inline_bytes_max == 0) limits.inline_bytes_max = are_lines_quick() ? inline_bytes : four_lines_bytes;
  if (limits.read_by_two_bytes_min == 0) limits.read_by_two_bytes_min = are_lines_quick() ? any_bytes : 1;
  limits.one_way_chunk_bytes = std::min(limits.one_way_chunk_bytes, limits.chunk_bytes);
  limits.alternating_chunk_bytes = std::min(limits.alternating_chunk_bytes, limits.chunk_bytes);
  return limits;
}

SharedLimits for_oversubscribed(SharedLimits limits) {
  limits.one_shot_bytes_max = limits.one_shot_bytes_max_alternating = limits.one_shot_bytes_max_oversubscribed;
  limits.one_way_chunk_bytes = limits.alternating_chunk_bytes = limits.chunk_bytes;
  limits.read_by_two_bytes_min = 1;
  return limits;
}

}  // namespace tutti::intranode
