// extent.hpp: the memory that a view reaches, from its lowest to its highest byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tutti/view.hpp>

namespace tutti {

struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// Empty for a view without elements.
inline Extent extent_of(const View& view) {
  auto low = reinterpret_cast<std::uintptr_t>(view.data());
  if (view.count() == 0) return {low, low};
  const auto element_bytes = static_cast<std::int64_t>(size_of(view.dtype()));
  auto high = low + static_cast<std::uintptr_t>(element_bytes);
  for (std::size_t i = 0; i < view.shape().size(); ++i) {
    const std::int64_t reach = (view.shape()[i] - 1) * view.strides()[i] * element_bytes;
    (reach < 0 ? low : high) += static_cast<std::uintptr_t>(reach);
  }
  return {low, high};
}

inline bool overlap(const View& a, const View& b) {
  const Extent x = extent_of(a), y = extent_of(b);
  return x.begin < y.end && y.begin < x.end;
}

}  // namespace tutti
