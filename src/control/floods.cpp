// floods.cpp: de-duplication in constant memory per origin.
// SPDX-License-Identifier: Apache-2.0
#include "control/floods.hpp"

#include <utility>

namespace tutti::control {

bool FloodLog::is_new(int origin, std::uint64_t number) {
  if (number == 0) return false;
  Seen& seen = seen_[origin];
  if (number > seen.highest) {
    const std::uint64_t ahead = number - seen.highest;
    seen.below = ahead >= 64 ? 0 : seen.below << ahead;
    if (seen.highest > 0 && ahead <= 64) seen.below |= std::uint64_t{1} << (ahead - 1);
    seen.highest = number;
    return true;
  }
  const std::uint64_t behind = seen.highest - number;
  if (behind == 0 || behind > 64) return false;  // so late that it was seen, or nobody waits for it any more
  const std::uint64_t bit = std::uint64_t{1} << (behind - 1);
  return (std::exchange(seen.below, seen.below | bit) & bit) == 0;
}

void FloodLog::keep(std::vector<std::byte> encoded) {
  recent_bytes_ += encoded.size();
  recent_.push_back(std::move(encoded));
  while (recent_.size() > recent_count_max || recent_bytes_ > recent_bytes_max) {
    recent_bytes_ -= recent_.front().size();
    recent_.pop_front();
  }
}

}  // namespace tutti::control
