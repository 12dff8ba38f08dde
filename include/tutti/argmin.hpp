// argmin.hpp: the smallest and the largest value, with their places.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include <tutti/own_op.hpp>

namespace tutti {
namespace detail {

/// NaN wins, as in min and max; of equal values, and of several NaN, the smaller index.
template <class A, class Less>
A extreme(const A& a, const A& b, Less less) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
  if (!a_is_nan && a.value != b.value) return less(a.value, b.value) ? a : b;
  return a.index <= b.index ? a : b;
}

struct ArgMin {
  template <class A>
  A operator()(const A& a, const A& b) const {
    return extreme(a, b, std::less<>{});
  }
};
struct ArgMax {
  template <class A>
  A operator()(const A& a, const A& b) const {
    return extreme(a, b, std::greater<>{});
  }
};

}  // namespace detail

/// A value and where it is: the rank, or any other number. Of equal values the smaller index counts.
template <Number T>
struct At {
  T value{};
  std::int64_t index = 0;
  friend bool operator==(const At&, const At&) = default;
};
/// MPI's minloc and maxloc:
/// `auto [loss, rank] = world.all_reduce(tutti::At<double>{loss, world.rank()}, {.op = tutti::argmin})`.
inline constexpr Function<detail::ArgMin> argmin{detail::ArgMin{}, true};
inline constexpr Function<detail::ArgMax> argmax{detail::ArgMax{}, true};

}  // namespace tutti
