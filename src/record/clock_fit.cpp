// clock_fit.cpp: aligns clocks by what cannot have happened.
// SPDX-License-Identifier: Apache-2.0
#include "record/clock_fit.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace tutti::record {

TickClock::TickClock(ClockReading begin, ClockReading end) : begin_(begin), end_(end) {
  if (end.ticks > begin.ticks && end.real_ns > begin.real_ns)
    ns_per_tick_ = static_cast<double>(end.real_ns - begin.real_ns) / static_cast<double>(end.ticks - begin.ticks);
}

// From the later reading back: what is looked at is near to it.
std::int64_t TickClock::at_ns(std::uint64_t ticks) const {
  const auto distance = static_cast<std::int64_t>(ticks - end_.ticks);
  return end_.real_ns + static_cast<std::int64_t>(static_cast<double>(distance) * ns_per_tick_);
}

std::int64_t TickClock::span_ns(std::uint64_t ticks) const {
  return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_);
}

// The other one's entry comes before the first one's end: entered + offset <= left. And the other way round.
Offset offset_between(std::span<const Stay> first, std::span<const Stay> other) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const Stay*> by_call;
  for (const Stay& stay : first) by_call[{stay.group, stay.sequence}] = &stay;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min(), highest = std::numeric_limits<std::int64_t>::max();
  bool any = false;
  for (const Stay& stay : other) {
    const auto found = by_call.find({stay.group, stay.sequence});
    if (found == by_call.end()) continue;
    any = true;
    lowest = std::max(lowest, found->second->entered_ns - stay.left_ns);
    highest = std::min(highest, found->second->left_ns - stay.entered_ns);
  }
  if (!any) return {.ns = 0, .within = -1};
  // Clocks that drift leave no offset that fits all calls: the middle is as good as any.
  return {.ns = lowest + (highest - lowest) / 2,
          .within = std::max<std::int64_t>((highest - lowest) / 2, (lowest - highest) / 2)};
}

}  // namespace tutti::record
