// round_record.cpp: how two ranks' records become one.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/round_record.hpp"

#include <algorithm>

#include "kernel/kernel.hpp"

namespace tutti::mpi {
namespace {

void take_difference(RoundRecord& to, const RoundRecord& from) {
  if (to.other_rank >= 0) return;
  if (from.other_rank >= 0 || to.signature != from.signature) {
    const bool is_first_the_same = to.signature == from.signature;
    to.other = is_first_the_same ? from.other : from.signature;
    to.other_rank = is_first_the_same ? from.other_rank : from.rank;
  }
}

void combine_payload(RoundRecord& to, const RoundRecord& from) {
  if (to.fused == Fused::joined) {
    for (std::size_t i = 0; i < to.bytes; ++i) to.payload[i] |= from.payload[i];
  } else if (to.fused == Fused::reduced) {
    const auto count = static_cast<std::int64_t>(to.bytes / size_of(to.dtype));
    kernel::reduce(to.op, to.dtype, to.payload.data(), from.payload.data(), to.payload.data(), count);
  }
}

}  // namespace

void combine(RoundRecord& to, const RoundRecord& from) {
  const bool is_one_call = to.lowest == to.highest && from.lowest == from.highest && to.lowest == from.lowest;
  to.lowest = std::min(to.lowest, from.lowest);
  to.highest = std::max(to.highest, from.highest);
  if (!is_one_call) return;
  take_difference(to, from);
  if (to.other_rank < 0) combine_payload(to, from);
}

}  // namespace tutti::mpi
