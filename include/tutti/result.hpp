// result.hpp: what the verbs that return a result take, and what they return.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

#include <tutti/element.hpp>
#include <tutti/verbs.hpp>
#include <tutti/wrong_use.hpp>

namespace tutti {
namespace detail {

/// One element by itself, not an array of them.
template <class T>
concept AnyValue = Element<T> && !std::ranges::range<T> && !Viewable<T&>;
template <class T>
concept StructValue = AnyValue<T> && StructElement<T>;
template <class T>
concept Value = AnyValue<T> && !StructElement<T>;

/// What a verb returns for a range: a text for a text, otherwise a vector.
template <class R>
using ResultOf = std::conditional_t<Text<R>, std::basic_string<std::ranges::range_value_t<R>>,
                                    std::vector<std::ranges::range_value_t<R>>>;

/// A range that is not written in place: it is const, or a temporary that owns its elements.
template <class R>
concept Unwritten = ElementRange<R> &&(ConstRange<R> || !std::ranges::borrowed_range<R>);

/// A range of structs, to be reduced in place.
template <class R>
concept StructRange = LastingRange<R> && !ConstRange<R> && StructElement<std::ranges::range_value_t<R>>;

template <class R>
using ValueOf = std::ranges::range_value_t<R>;

}  // namespace detail

/// A range whose result can be returned; a temporary will do, because the call is over when it returns. (std::vector<bool> has no contiguous elements.)
template <class R>
concept Returnable = ElementRange<R> && !std::is_same_v<std::ranges::range_value_t<R>, bool>;

/// What an uneven gather gives: all values, and how many came from each rank.
template <class T>
struct Uneven {
  std::vector<T> values;
  Sizes counts{};
};

}  // namespace tutti
