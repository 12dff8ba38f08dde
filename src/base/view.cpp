// view.cpp: views are checked once, when they are made; code that receives one can rely on it.
// SPDX-License-Identifier: Apache-2.0
//
// Invariants of a view: (1) the dtype and device kind are known ones; (2) at most 16 axes, no extent is negative;
// (3) the bytes of all elements, and the distance between the first and any element, fit in 63 bits; (4) the pointer is
// not null unless there are no elements.
#include <tutti/view.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include <tutti/error.hpp>

#include "base/extent.hpp"

namespace tutti {
namespace {

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

[[noreturn]] void refuse(const std::string& why) { throw InvalidArgument("cannot make a view: " + why); }

bool has_elements(std::span<const std::int64_t> shape) { return std::ranges::find(shape, 0) == shape.end(); }

void check_kinds(DType dtype, Device device) {
  if (!is_dtype(dtype)) {
    refuse(fmt::format("{} is not the number of an element type (0 to {} are)", int(dtype), dtype_count - 1));
  }
  if (device.kind != Device::Kind::cpu && device.kind != Device::Kind::cuda) {
    refuse(fmt::format("{} is not a kind of device (1 is cpu, 2 is cuda)", int(device.kind)));
  }
  if (device.index < 0) refuse(fmt::format("device index {} is negative", device.index));
}

void check_shape(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (shape.size() > std::size_t(View::max_axes)) {
    refuse(fmt::format("{} axes, at most {} are possible; reshape the array to fewer", shape.size(), View::max_axes));
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0) refuse(fmt::format("axis {} of shape {} is negative", axis, shape_text(shape)));
  }
  if (!strides.empty() && strides.size() != shape.size()) {
    refuse(fmt::format("{} strides for {} axes; give one stride for each axis, or none for row-major", strides.size(),
                       shape.size()));
  }
}

// Invariant 3. Row-major strides need no look of their own: they reach no farther than the elements do.
void check_extent(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (!has_elements(shape)) return;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t bytes = size;
  for (std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      refuse(fmt::format("shape {} of {} has more bytes than 64 bits can count", shape_text(shape), name_of(dtype)));
    }
  }
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    std::int64_t reach = 0;
    std::int64_t& end = strides[axis] < 0 ? lowest : highest;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) || __builtin_mul_overflow(reach, size, &reach) ||
        __builtin_add_overflow(end, reach, &end)) {
      refuse(fmt::format("shape {} with strides {} reaches farther than 64 bits can count", shape_text(shape),
                         shape_text(strides)));
    }
  }
}

struct Axis {
  std::int64_t length = 1, stride = 1;
  [[nodiscard]] std::int64_t reach() const { return (length - 1) * stride; }
};

// Whether steps along these axes, fewer than `length` forwards or backwards on each, add up to `distance`. From the
// longest stride to the shortest, and only as far as the shorter ones can make up for. At most about as much work as
// there are elements.
bool steps_add_up(std::span<const Axis> axes, std::int64_t distance) {
  if (axes.empty()) return distance == 0;
  const Axis longest = axes.front();
  std::int64_t rest = 0;
  for (const Axis& axis : axes.subspan(1)) rest += axis.reach();
  const auto rounded_up = [&](std::int64_t x) {
    return x / longest.stride + (x > 0 && x % longest.stride != 0 ? 1 : 0);
  };
  const std::int64_t first = std::max(rounded_up(distance - rest), 1 - longest.length);
  const std::int64_t last = std::min(-rounded_up(-distance - rest), longest.length - 1);
  for (std::int64_t step = first; step <= last; ++step) {
    if (steps_add_up(axes.subspan(1), distance - step * longest.stride)) return true;
  }
  return false;
}

// Two elements are the same memory if their distance is 0: with a first step, along any axis, that the shorter ones
// undo.
bool meets_itself(std::span<const Axis> axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto shorter = axes.subspan(i + 1);
    std::int64_t rest = 0;
    for (const Axis& axis : shorter) rest += axis.reach();
    for (std::int64_t step = 1; step < axes[i].length && step * axes[i].stride <= rest; ++step) {
      if (steps_add_up(shorter, step * axes[i].stride)) return true;
    }
  }
  return false;
}

// Whether steps along these axes, from 0 to length − 1 on each, add up to `distance`: from the longest stride to the shortest, and only
// as far as the shorter ones can make up for. No two strides are the same. True, too, when `looks` are used up.
bool forward_steps_add_up(std::span<const Axis> axes, std::int64_t distance, int& looks) {
  if (axes.empty() || distance < 0) return distance == 0;
  if (--looks < 0) return true;
  std::int64_t rest = 0, divisor = 0;
  for (const Axis& axis : axes) divisor = std::gcd(divisor, axis.stride);
  for (const Axis& axis : axes.subspan(1)) rest += axis.reach();
  if (distance % divisor != 0) return false;
  const std::int64_t stride = axes.front().stride;
  const std::int64_t first = std::max<std::int64_t>(0, (distance - rest + stride - 1) / stride);
  const std::int64_t last = std::min(distance / stride, axes.front().length - 1);
  for (std::int64_t step = first; step <= last; ++step) {
    if (forward_steps_add_up(axes.subspan(1), distance - step * stride, looks)) return true;
  }
  return false;
}

// The axes of a view, in units of `unit_bytes`, and the bytes of an element as one more.
void add_axes(const View& view, std::int64_t unit_bytes, std::vector<Axis>& axes) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(view.dtype()));
  for (std::size_t i = 0; i < view.shape().size(); ++i) {
    const std::int64_t stride = std::abs(view.strides()[i]) * (element_bytes / unit_bytes);
    if (view.shape()[i] > 1 && stride > 0) axes.push_back({.length = view.shape()[i], .stride = stride});
  }
  if (unit_bytes == 1) axes.push_back({.length = element_bytes, .stride = 1});
}

}  // namespace

// An element of `a` is reached by steps forwards from the lowest element, one of `b` by steps backwards from the highest: they are the
// same if the steps of both add up to the distance between the lowest of `a` and the highest of `b`.
bool elements_meet(const View& a, const View& b) {
  constexpr int looks_max = 10'000;
  const auto a_bytes = static_cast<std::int64_t>(size_of(a.dtype())),
             b_bytes = static_cast<std::int64_t>(size_of(b.dtype()));
  const Extent of_a = extent_of(a), of_b = extent_of(b);
  const std::int64_t gap = distance_between(b, a) + of_b.begin - of_a.begin;  // from the lowest byte of a to that of b
  const std::int64_t unit = a_bytes == b_bytes && gap % a_bytes == 0 ? a_bytes : 1;
  std::vector<Axis> axes;
  add_axes(a, unit, axes);
  add_axes(b, unit, axes);
  std::ranges::sort(axes, std::greater(), &Axis::stride);
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().stride == axis.stride) {
      merged.back().length += axis.length - 1;
    } else {
      merged.push_back(axis);
    }
  }
  int looks = looks_max;
  return forward_steps_add_up(merged, (gap + of_b.end - of_b.begin - unit) / unit, looks);
}

bool overlaps_itself(const View& view) {
  if (!view.present() || view.is_contiguous()) return false;
  std::array<Axis, View::max_axes> axes;
  std::size_t count = 0;
  for (std::size_t i = 0; i < view.shape().size(); ++i) {
    if (view.shape()[i] == 0) return false;
    if (view.shape()[i] == 1) continue;
    if (view.strides()[i] == 0) return true;
    axes[count++] = {.length = view.shape()[i], .stride = std::abs(view.strides()[i])};
  }
  const std::span<Axis> found(axes.data(), count);
  std::ranges::sort(found, std::greater(), &Axis::stride);
  return meets_itself(found);
}

View::View(void* data, DType dtype, std::span<const std::int64_t> shape, Device device)
    : View(data, dtype, shape, {}, device) {}

View::View(void* data, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
           Device device)
    : data_(data), kind_{.dtype = dtype, .present = true, .device = device.kind, .device_index = device.index} {
  check_kinds(dtype, device);
  check_shape(shape, strides);
  check_extent(dtype, shape, strides);
  if (data == nullptr && has_elements(shape)) {
    refuse(fmt::format("the pointer is null, but shape {} has elements", shape_text(shape)));
  }
  kind_.axes = static_cast<std::int64_t>(shape.size());
  std::ranges::copy(shape, shape_.begin());
  if (!strides.empty()) {
    std::ranges::copy(strides, strides_.begin());
    return;
  }
  std::int64_t stride = 1;
  for (int axis = axes() - 1; axis >= 0; --axis) {
    strides_[std::size_t(axis)] = stride;
    // Without elements nothing is ever multiplied by a stride, and the product of the other extents may overflow.
    if (has_elements(shape)) stride *= shape_[std::size_t(axis)];
  }
}

View View::read_only(const void* data, DType dtype, std::span<const std::int64_t> shape,
                     std::span<const std::int64_t> strides, Device device) {
  View view(const_cast<void*>(data), dtype, shape, strides, device);  // the flag below keeps the promise
  view.kind_.read_only = true;
  return view;
}

std::int64_t View::product() const {
  if (!kind_.present || !has_elements(shape())) return 0;
  std::int64_t count = 1;
  for (std::int64_t extent : shape()) count *= extent;
  return count;
}

bool View::is_row_major() const {
  if (!has_elements(shape())) return true;
  std::int64_t expected = 1;
  for (int axis = axes() - 1; axis >= 0; --axis) {
    const std::int64_t extent = shape_[std::size_t(axis)];
    if (extent != 1 && strides_[std::size_t(axis)] != expected) return false;
    expected *= extent;
  }
  return true;
}

View View::slice(int axis, std::int64_t begin, std::int64_t length) const {
  if (axis < 0 || axis >= axes()) {
    throw InvalidArgument(fmt::format("cannot slice axis {} of a view with {} axes", axis, axes()));
  }
  const std::int64_t extent = shape_[std::size_t(axis)];
  if (begin < 0 || length < 0 || begin > extent || length > extent - begin) {
    throw InvalidArgument(fmt::format("cannot slice {} elements from {} on: axis {} of shape {} has {}", length, begin,
                                      axis, shape_text(shape()), extent));
  }
  View part = *this;
  part.shape_[std::size_t(axis)] = length;
  if (part.count() > 0) {  // an empty slice must not point past the array
    part.data_ =
        static_cast<std::byte*>(data_) + begin * strides_[std::size_t(axis)] * std::int64_t(size_of(kind_.dtype));
  }
  return part;
}

}  // namespace tutti
