// segment_buffers.hpp: scratch for the segments of a pipeline, used in turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "plan/builder.hpp"

namespace tutti {

class SegmentBuffers {
 public:
  static constexpr std::int64_t max = 4;  // segments that may be under way in scratch at once

  /// For an array of `count` elements in segments of `segment` (0: one segment).
  SegmentBuffers(PlanBuilder& b, std::int64_t count, std::int64_t segment)
      : length_(segment > 0 ? std::min(segment, count) : count),
        used_(length_ == 0 ? 1 : std::min(max, (count + length_ - 1) / length_)),
        memory_(b.scratch(length_ * used_)) {}

  /// The slot of the segment that starts at `begin`.
  [[nodiscard]] Piece at(std::int64_t begin, std::int64_t count) const {
    return memory_.part(begin / length_ % used_ * length_, count);
  }

 private:
  std::int64_t length_, used_;
  Piece memory_;
};

}  // namespace tutti
