// extent.hpp: the memory that a view covers, from its lowest to its highest byte, and whether elements overlap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tutti/view.hpp>

namespace tutti {

/// In bytes from the view's first element.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Empty for a view without elements.
inline Extent extent_of(const View& view) {
  if (view.count() == 0) return {};
  const auto element_bytes = static_cast<std::int64_t>(size_of(view.dtype()));
  Extent extent{.end = element_bytes};
  for (std::size_t i = 0; i < view.shape().size(); ++i) {
    const std::int64_t along = (view.shape()[i] - 1) * view.strides()[i] * element_bytes;
    (along < 0 ? extent.begin : extent.end) += along;
  }
  return extent;
}

/// Bytes from where `b` begins to where `a` does.
inline std::int64_t distance_between(const View& a, const View& b) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.data()) -
                                   reinterpret_cast<std::uintptr_t>(b.data()));
}

/// Whether they have no byte in common, at this distance.
inline bool are_apart(const Extent& a, const Extent& b, std::int64_t distance) {
  return distance + a.end <= b.begin || b.end <= distance + a.begin;
}

/// Of views whose extents are not apart. Exact, unless finding out takes too long: then they count as sharing memory.
bool elements_meet(const View& a, const View& b);

/// Whether an element of one is memory of the other: columns of one matrix, side by side, do not overlap.
inline bool overlap(const View& a, const View& b) {
  if (are_apart(extent_of(a), extent_of(b), distance_between(a, b))) return false;
  return (a.is_contiguous() && b.is_contiguous()) || elements_meet(a, b);
}

/// Whether two elements of the view share memory: overlapping strides, as of a sliding window. Exact.
bool overlaps_itself(const View& view);

}  // namespace tutti
