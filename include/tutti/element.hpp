// element.hpp: which C++ types arrays can be made of, and how a verb sees each of them.
// SPDX-License-Identifier: Apache-2.0
//
// A Number is what the built-in reductions know. An enum is its underlying integer. An element that is a std::array makes axes of
// its own: a std::vector<std::array<float, 3>> is seen as float32 with two axes. Any other type that can be copied byte by byte is a struct:
// the verbs that move take it as it is, those that reduce take it with a function of the program's own (own_op.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tutti/dtype.hpp>

namespace tutti {

class View;

namespace detail {

template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;

/// What stays behind when the bytes travel: an address means nothing in another process.
template <class T>
inline constexpr bool is_address = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class T, std::size_t n>
inline constexpr bool is_address<std::span<T, n>> = true;
template <class C>
inline constexpr bool is_address<std::basic_string_view<C>> = true;
template <class T>
inline constexpr bool is_address<std::reference_wrapper<T>> = true;

template <class T>
consteval bool can_be_struct() {
  if constexpr (!std::is_class_v<T> && !std::is_union_v<T>) return false;
  else if constexpr (is_address<T> || std::is_same_v<T, View> || std::is_empty_v<T> || std::ranges::range<T>)
    return false;
  else if constexpr (requires(const T& t) { t.data_handle(); }) return false;  // a view of an array: std::mdspan
  else if constexpr (is_pair<T>)  // its assignment is not trivial, its copy is
    return std::is_trivially_copy_constructible_v<T> && !is_address<typename T::first_type> &&
           !is_address<typename T::second_type>;
  else return std::is_trivially_copyable_v<T>;
}

template <class T>
consteval bool is_element() {
  if constexpr (is_array<T>) return std::tuple_size_v<T> > 0 && is_element<typename T::value_type>();
  else return Number<T> || std::is_enum_v<T> || can_be_struct<T>();
}

/// An element as a verb sees it: of this dtype, with these axes inside.
struct ElementLayout {
  DType dtype = DType::uint8;
  int axes = 0;
  std::array<std::int64_t, 4> extents{};
};

template <class T>
consteval ElementLayout layout_of() {
  if constexpr (Number<T>) {
    return {.dtype = dtype_of<T>};
  } else if constexpr (std::is_enum_v<T>) {
    return {.dtype = dtype_of<std::underlying_type_t<T>>};
  } else if constexpr (is_array<T>) {
    ElementLayout layout = layout_of<typename T::value_type>();
    for (int i = layout.axes; i > 0; --i) layout.extents[std::size_t(i)] = layout.extents[std::size_t(i - 1)];
    layout.extents[0] = std::int64_t{std::tuple_size_v<T>};
    ++layout.axes;
    return layout;
  } else if constexpr (has_struct_of(sizeof(T))) {
    return {.dtype = struct_of(sizeof(T))};
  } else {  // too large to be known by its size: its bytes
    return {.axes = 1, .extents = {std::int64_t{sizeof(T)}}};
  }
}

}  // namespace detail

/// A type that arrays can be made of.
template <class T>
concept Element = detail::is_element<std::remove_cv_t<T>>();

/// An element that only moves, unless the program says how it is reduced.
template <class T>
concept StructElement = Element<T> && detail::can_be_struct<std::remove_cv_t<T>>() && !Number<T>;

/// Elements one after the other in memory.
template <class R>
concept ElementRange =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Element<std::ranges::range_value_t<R>>;

/// One whose memory outlives the call: a named vector or array, or a span. Temporaries are refused.
template <class R>
concept LastingRange = ElementRange<R> && std::ranges::borrowed_range<R>;

/// One that cannot be written.
template <class R>
concept ConstRange = ElementRange<R> && std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

}  // namespace tutti
