// view_of.hpp: views of arrays whose type tells the dtype: ranges, pointers with extents, std::mdspan, matrices of other libraries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include <tutti/view.hpp>

namespace tutti {

template <Element T>
View::View(T* data, std::int64_t count) noexcept
    : data_(const_cast<void*>(static_cast<const void*>(data))),
      kind_{.axes = 1 + detail::layout_of<std::remove_cv_t<T>>().axes,
            .dtype = detail::layout_of<std::remove_cv_t<T>>().dtype,
            .read_only = std::is_const_v<T>,
            .present = true} {
  constexpr detail::ElementLayout inner = detail::layout_of<std::remove_cv_t<T>>();
  shape_[0] = count;
  std::int64_t stride = 1;
  for (int i = inner.axes; i > 0; --i) {
    shape_[std::size_t(i)] = inner.extents[std::size_t(i - 1)];
    strides_[std::size_t(i)] = stride;
    stride *= shape_[std::size_t(i)];
  }
  strides_[0] = stride;
}

namespace detail {

/// With the axes of the elements themselves behind the others. `strides` are in elements; empty: row-major.
template <Element T>
View view_of(T* data, std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  constexpr ElementLayout inner = layout_of<std::remove_cv_t<T>>();
  static_assert(inner.axes <= 1,
                "tutti: a view has elements of one std::array at most: pass tutti::view of the numbers inside");
  const std::int64_t inner_count = inner.axes == 0 ? 1 : inner.extents[0];
  std::array<std::int64_t, View::max_axes + 1> shape{}, apart{};
  const std::size_t axes = extents.size() < std::size_t(View::max_axes) ? extents.size() : std::size_t(View::max_axes);
  for (std::size_t i = 0; i < axes; ++i) shape[i] = extents[i];
  for (std::size_t i = 0; i < axes && i < strides.size(); ++i) apart[i] = strides[i] * inner_count;
  std::size_t all = axes;
  if (inner.axes == 1) {
    shape[all] = inner.extents[0];
    apart[all++] = 1;
  }
  const std::span<const std::int64_t> given(apart.data(), strides.empty() ? 0 : all);
  if constexpr (std::is_const_v<T>)
    return View::read_only(static_cast<const void*>(data), inner.dtype, std::span(shape).first(all), given);
  else return View(static_cast<void*>(data), inner.dtype, std::span<const std::int64_t>(shape).first(all), given);
}

}  // namespace detail

/// `extents` elements from `data` on: the dtype follows from the pointer. Strides are in elements; without them, row-major.
template <class T>
[[nodiscard]] View view(T* data, std::initializer_list<std::int64_t> extents,
                        std::initializer_list<std::int64_t> strides = {}) {
  if constexpr (Element<T>) {
    return detail::view_of(data, std::span(extents.begin(), extents.size()),
                           std::span(strides.begin(), strides.size()));
  } else {
    detail::explain_no_element<T>();
    return {};
  }
}

template <class M>
requires(MultiSpan<std::remove_cvref_t<M>> && !LastingRange<M>) View::View(M&& span) {
  constexpr std::size_t axes = std::remove_cvref_t<M>::rank();
  static_assert(axes < std::size_t(max_axes), "tutti: a view has at most 16 axes");
  std::array<std::int64_t, axes> shape{}, strides{};
  for (std::size_t i = 0; i < axes; ++i) {
    shape[i] = static_cast<std::int64_t>(span.extent(i));
    strides[i] = static_cast<std::int64_t>(span.stride(i));
  }
  *this = detail::view_of(span.data_handle(), shape, strides);
}

template <Matrix M>
View::View(M& matrix) {
  const std::int64_t rows = static_cast<std::int64_t>(matrix.rows()), cols = static_cast<std::int64_t>(matrix.cols());
  if constexpr (requires { matrix.rowStride(), matrix.colStride(); }) {
    const std::int64_t down = static_cast<std::int64_t>(matrix.rowStride());
    const std::int64_t right = static_cast<std::int64_t>(matrix.colStride());
    constexpr bool is_row_major = [] {
      if constexpr (requires { bool(M::IsRowMajor); }) return bool(M::IsRowMajor);
      else return false;
    }();
    const std::array<std::int64_t, 2> shape = is_row_major ? std::array{rows, cols} : std::array{cols, rows};
    const std::array<std::int64_t, 2> strides = is_row_major ? std::array{down, right} : std::array{right, down};
    *this = detail::view_of(matrix.data(), shape, strides);
  } else {
    *this = View(matrix.data(), rows * cols);
  }
}

}  // namespace tutti
