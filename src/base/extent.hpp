// extent.hpp: the memory that a view reaches, from its lowest to its highest byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tutti/view.hpp>

namespace tutti {

/// In bytes from the view's first element.
struct Reach {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// Empty for a view without elements.
inline Reach reach_of(const View& view) {
  if (view.count() == 0) return {};
  const auto element_bytes = static_cast<std::int64_t>(size_of(view.dtype()));
  Reach reach{.high = element_bytes};
  for (std::size_t i = 0; i < view.shape().size(); ++i) {
    const std::int64_t along = (view.shape()[i] - 1) * view.strides()[i] * element_bytes;
    (along < 0 ? reach.low : reach.high) += along;
  }
  return reach;
}

struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

inline Extent extent_of(const View& view) {
  const auto first = reinterpret_cast<std::uintptr_t>(view.data());
  const Reach reach = reach_of(view);
  return {first + static_cast<std::uintptr_t>(reach.low), first + static_cast<std::uintptr_t>(reach.high)};
}

inline bool overlap(const View& a, const View& b) {
  const Extent x = extent_of(a), y = extent_of(b);
  return x.begin < y.end && y.begin < x.end;
}

}  // namespace tutti
