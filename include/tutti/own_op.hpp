// own_op.hpp: reductions of one's own: tutti::op(function).
// SPDX-License-Identifier: Apache-2.0
//
// The function is called inside a loop that is compiled with it, so it is inlined as in a loop of the program's own. It combines two elements
// to one, must be associative, and must not throw.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include <tutti/element.hpp>
#include <tutti/op.hpp>

namespace tutti {
namespace detail {

/// Elements may lie anywhere: in a message they have no alignment.
template <class T>
struct Place {
  alignas(T) std::byte bytes[sizeof(T)];
  explicit Place(const void* array, std::size_t index) {
    std::memcpy(bytes, static_cast<const std::byte*>(array) + index * sizeof(T), sizeof(T));
  }
  [[nodiscard]] const T& value() const { return *std::launder(reinterpret_cast<const T*>(bytes)); }
};

template <class T>
void store(void* array, std::size_t index, const T& value) {
  std::memcpy(static_cast<std::byte*>(array) + index * sizeof(T), static_cast<const void*>(&value), sizeof(T));
}

template <class T>
bool is_aligned(const void* array) {
  return reinterpret_cast<std::uintptr_t>(array) % alignof(T) == 0;
}

template <class T, class F>
void combine(const void* state, void* to, const void* const* inputs, std::size_t input_count,
             std::size_t count) noexcept {
  const F& function = *std::launder(static_cast<const F*>(state));
  if (input_count == 2 && is_aligned<T>(inputs[0]) && is_aligned<T>(inputs[1])) {  // what compilers make vectors of
    const T* const a = static_cast<const T*>(inputs[0]);
    const T* const b = static_cast<const T*>(inputs[1]);
    for (std::size_t i = 0; i < count; ++i) store<T>(to, i, function(a[i], b[i]));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    Place<T> result(inputs[0], i);
    for (std::size_t k = 1; k < input_count; ++k)
      store<T>(result.bytes, 0, function(result.value(), Place<T>(inputs[k], i).value()));
    store<T>(to, i, result.value());
  }
}

/// The type of both parameters, where the function has one signature: void otherwise.
template <class F>
struct OperandOf {
  using type = void;
};
template <class F>
requires requires { &F::operator(); }
struct OperandOf<F> : OperandOf<decltype(&F::operator())> {};
template <class R, class A, class B>
struct OperandOf<R (*)(A, B)> {
  using type =
      std::conditional_t<std::is_same_v<std::remove_cvref_t<A>, std::remove_cvref_t<B>>, std::remove_cvref_t<A>, void>;
};
template <class R, class A, class B>
struct OperandOf<R (*)(A, B) noexcept> : OperandOf<R (*)(A, B)> {};
template <class F, class R, class A, class B>
struct OperandOf<R (F::*)(A, B) const> : OperandOf<R (*)(A, B)> {};
template <class F, class R, class A, class B>
struct OperandOf<R (F::*)(A, B) const noexcept> : OperandOf<R (*)(A, B)> {};

template <class T, class F>
inline constexpr bool combines = std::is_invocable_v<const F&, const T&, const T&>;

template <class T, class F>
Op own_op(const F& function, bool is_commutative) {
  static_assert(Element<T> && layout_of<T>().axes == 0,
                "tutti: the function reduces elements of at most 128 bytes, or of a multiple of 8 up to 896: make a "
                "larger struct alignas(8)");
  static_assert(combines<T, F>, "tutti: the function takes two elements of the array: [](Point a, Point b) { … }");
  static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(Op::Own::state),
                "tutti: the function captures 24 bytes at most, of trivially copyable values: capture a reference to "
                "the rest");
  if constexpr (combines<T, F>) {
    using Result = std::remove_cvref_t<std::invoke_result_t<const F&, const T&, const T&>>;
    static_assert(std::is_same_v<Result, T>,
                  "tutti: the function returns what it takes: the combination of two elements is an element");
    if constexpr (std::is_same_v<Result, T> && sizeof(F) <= sizeof(Op::Own::state)) {
      Op::Own own{.loop = &combine<T, F>, .dtype = layout_of<T>().dtype, .is_commutative = is_commutative};
      if constexpr (!std::is_empty_v<F>) std::memcpy(own.state.data(), static_cast<const void*>(&function), sizeof(F));
      return Op(own);
    }
  }
  return {};
}

/// The standard library's function objects over numbers that are built in.
template <class F>
inline constexpr Op::Kind built_in = Op::Kind::own;
template <class T>
concept Numeric = std::is_void_v<T> || Number<T>;
template <Numeric T>
inline constexpr Op::Kind built_in<std::plus<T>> = Op::Kind::sum;
template <Numeric T>
inline constexpr Op::Kind built_in<std::multiplies<T>> = Op::Kind::product;
template <Numeric T>
inline constexpr Op::Kind built_in<std::bit_and<T>> = Op::Kind::band;
template <Numeric T>
inline constexpr Op::Kind built_in<std::bit_or<T>> = Op::Kind::bor;
template <Numeric T>
inline constexpr Op::Kind built_in<std::bit_xor<T>> = Op::Kind::bxor;

}  // namespace detail

/// A function as a reduction, before the type of the elements is known. Made by tutti::op.
template <class F>
class Function {
 public:
  constexpr Function(const F& function, bool is_commutative) : function_(function), is_commutative_(is_commutative) {}
  template <class T>
  [[nodiscard]] Op of() const {
    return detail::own_op<T, F>(function_, is_commutative_);
  }

 private:
  F function_;
  bool is_commutative_;
};

struct FunctionOptions {
  bool commutative = true;  // false: the operands are combined in the order of ranks
};

/// Any function of two elements that gives one, with what it captures by value or reference (24 bytes). Both its parameters have one type: the
/// elements' (for structs, a generic function will do). It is associative. Unless `.commutative = false`, it may be given its operands in any order.
template <class F>
[[nodiscard]] constexpr Function<std::decay_t<F>> op(F&& function, const FunctionOptions& options = {}) {
  return {function, options.commutative};
}

template <class F>
Op::Op(const Function<F>& function) {
  if constexpr (detail::built_in<F> != Kind::own) *this = Op(detail::built_in<F>);
  else if constexpr (std::is_void_v<typename detail::OperandOf<F>::type>)
    static_assert(
        detail::never<F>,
        "tutti: say what the function reduces: two parameters of the elements' type, as in [](float a, float b) { … }");
  else *this = function.template of<typename detail::OperandOf<F>::type>();
}

/// The reduction of structs: there is none but the program's own.
template <class T>
class OpOn {
 public:
  template <class F>
  OpOn(const Function<F>& function) : op_(function.template of<T>()) {}  // NOLINT: implicit, as in Op
  /// Anything else: says what to write.
  template <class U>
  OpOn(const U&) {  // NOLINT: as above
    if constexpr (std::is_same_v<U, Op>)
      static_assert(detail::never<U>,
                    "tutti: the built-in reductions are for numbers: for structs write {.op = tutti::op([](Point a, "
                    "Point b) { … })}");
    else static_assert(detail::never<U>, "tutti: a function of your own is given as {.op = tutti::op(function)}");
  }
  operator const Op&() const { return op_; }  // NOLINT: an OpOn is an Op whose elements are known

 private:
  Op op_;
};

}  // namespace tutti
