// wrong_use.hpp: what the compiler says to the commonest mistakes: one line that tells what to write instead.
// SPDX-License-Identifier: Apache-2.0
//
// Each function is called where a template was chosen for something that cannot work. Exactly one static_assert fails.
#pragma once

#include <chrono>
#include <memory>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tutti/element.hpp>

namespace tutti {

class Op;
class TimeLimit;
template <class F>
class Function;

namespace detail {

template <class>
inline constexpr bool never = false;

template <class T>
inline constexpr bool is_vector_of_bool = false;
template <class A>
inline constexpr bool is_vector_of_bool<std::vector<bool, A>> = true;

template <class T>
inline constexpr bool is_smart_pointer = false;
template <class T, class D>
inline constexpr bool is_smart_pointer<std::unique_ptr<T, D>> = true;
template <class T>
inline constexpr bool is_smart_pointer<std::shared_ptr<T>> = true;

template <class T>
inline constexpr bool is_duration = false;
template <class R, class P>
inline constexpr bool is_duration<std::chrono::duration<R, P>> = true;

template <class T>
inline constexpr bool is_own_function = false;
template <class F>
inline constexpr bool is_own_function<Function<F>> = true;

/// What an option holds: a root, a reduction, a timeout.
template <class T>
concept OptionValue = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Op> ||
    std::is_same_v<T, TimeLimit> || is_duration<T> || is_own_function<T> || requires {
  &T::operator();
};
/// No View is made of such a thing, not even to say that it is wrong: clang takes {.op = …} for a View as readily as for the options, and
/// calls that ambiguous.
template <class T>
concept NoOption = (std::is_class_v<T> || std::is_pointer_v<T>)&&!OptionValue<T>;

/// A range of characters that is one text.
template <class R>
concept Text = std::ranges::contiguous_range<R> && std::is_convertible_v < const std::remove_cvref_t<R>
&, std::string_view > ;

/// T cannot be an element of an array.
template <class T>
consteval void explain_no_element() {
  using E = std::remove_cv_t<T>;
  if constexpr (std::is_void_v<E>)
    static_assert(
        never<T>,
        "tutti: void* does not say what the elements are: pass a pointer to them, or View(pointer, dtype, shape)");
  else if constexpr (is_address<E>)
    static_assert(
        never<T>,
        "tutti: the elements are pointers or views, which mean nothing in another process: pass what they point to");
  else if constexpr (std::is_convertible_v<const E&, std::string_view>)
    static_assert(
        never<T>,
        "tutti: the elements are strings, whose text lies elsewhere: join them to one std::string and pass that");
  else if constexpr (std::ranges::range<E>)
    static_assert(never<T>,
                  "tutti: the elements are containers, whose memory is not in one piece: pass one std::vector of all "
                  "elements and the shape with tutti::view");
  else if constexpr (std::is_polymorphic_v<E>)
    static_assert(never<T>,
                  "tutti: the elements have virtual functions, so they cannot be copied byte by byte: pass a struct of "
                  "their data");
  else if constexpr (std::is_empty_v<E>) static_assert(never<T>, "tutti: the elements have no data");
  else
    static_assert(never<T>,
                  "tutti: the elements are not trivially copyable: pass a struct of numbers, enums and std::arrays");
}

/// T was passed where an array is expected.
template <class T>
consteval void explain_no_array() {
  using A = std::remove_cvref_t<T>;
  if constexpr (std::is_pointer_v<A>)
    static_assert(never<T>,
                  "tutti: a pointer does not say how many elements there are: pass std::span(pointer, count) or "
                  "tutti::view(pointer, {rows, columns}); for one value, x = all_reduce(x)");
  else if constexpr (is_smart_pointer<A>)
    static_assert(
        never<T>,
        "tutti: a smart pointer does not say how many elements there are: pass std::span(pointer.get(), count)");
  else if constexpr (is_vector_of_bool<A>)
    static_assert(never<T>, "tutti: std::vector<bool> has no elements in memory: use std::vector<char>");
  else if constexpr (std::is_same_v<A, Op>)
    static_assert(never<T>, "tutti: the reduction is an option: write {.op = tutti::Op::max}");
  else if constexpr (is_duration<A>) static_assert(never<T>, "tutti: the timeout is an option: write {.timeout = 30s}");
  else if constexpr (std::is_arithmetic_v<A>)
    static_assert(never<T>, "tutti: a number is not an array here: pass std::span(&x, 1), and a root as {.root = 0}");
  else if constexpr (ElementRange<T>)
    static_assert(
        never<T>,
        "tutti: the array is a temporary, which is gone while the call still works on it: give it a name first");
  else if constexpr (std::ranges::contiguous_range<A>) explain_no_element<std::ranges::range_value_t<A>>();
  else if constexpr (std::ranges::range<A>)
    static_assert(never<T>, "tutti: the elements do not lie in one piece of memory: copy them to a std::vector first");
  else if constexpr (std::is_invocable_v<A&, int, int> || std::is_invocable_v<A&, double, double>)
    static_assert(never<T>, "tutti: a reduction of your own is an option: write {.op = tutti::op(function)}");
  else if constexpr (StructElement<A>)
    static_assert(
        never<T>,
        "tutti: a struct is reduced by a function of your own: write {.op = tutti::op([](Point a, Point b) { … })}");
  else
    static_assert(never<T>,
                  "tutti: this is not an array: pass a named contiguous range, a std::span, or tutti::view(pointer, "
                  "{rows, columns})");
}

/// A root, an op or a timeout was passed as it is.
template <class T>
consteval void explain_option() {
  if constexpr (std::is_integral_v<std::remove_cvref_t<T>>)
    static_assert(never<T>, "tutti: the root is an option: write {.root = 0}");
  else explain_no_array<T>();
}

/// T is a text or an array of structs, to be reduced without a function.
template <class T>
consteval void explain_no_reduction() {
  if constexpr (Text<T>)
    static_assert(never<T>, "tutti: text is moved, not reduced: use broadcast_from, gather or all_gather");
  else
    static_assert(never<T>,
                  "tutti: the elements are structs: say how two of them are combined, {.op = tutti::op([](Point a, "
                  "Point b) { … })}");
}

}  // namespace detail
}  // namespace tutti
