// same_shape.hpp: requests that differ in nothing but addresses.
// SPDX-License-Identifier: Apache-2.0
//
// Programs make the same call over and over. What was found out of the first one (that it is sound, how its arrays fall into
// blocks, its signature) holds for the next one too, if that is like it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tutti/request.hpp>

#include "base/extent.hpp"

namespace tutti {

/// How two arrays lie to each other. Worked out once for many of the same shapes and strides.
class Position {
 public:
  Position() = default;
  Position(const View& input, const View& output)
      : input_(extent_of(input)),
        output_(extent_of(output)),
        distance_(distance_between(input, output)),
        apart_(are_apart(input_, output_, distance_)) {}
  /// At the same distance, or apart like them.
  [[nodiscard]] bool holds_for(const View& input, const View& output) const {
    const std::int64_t distance = distance_between(input, output);
    return distance == distance_ || (apart_ && are_apart(input_, output_, distance));
  }

 private:
  Extent input_, output_;
  std::int64_t distance_ = 0;
  bool apart_ = true;
};

inline bool same_shape(const Request& a, const Request& b) {
  return a.verb == b.verb && a.op == b.op && a.root == b.root && a.axis == b.axis && a.concat_axis == b.concat_axis &&
         a.stack == b.stack && a.uneven == b.uneven && a.differentiated == b.differentiated &&
         a.structure == b.structure && a.sizes_follow == b.sizes_follow && !a.allocate && !b.allocate &&
         a.input.is_like(b.input) && a.output.is_like(b.output) &&
         Position(b.input, b.output).holds_for(a.input, a.output) && a.sizes == b.sizes &&
         a.recv_sizes == b.recv_sizes && a.pairs == b.pairs;
}

}  // namespace tutti
