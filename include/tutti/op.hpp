// op.hpp: the reductions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tutti/dtype.hpp>
#include <tutti/wrong_use.hpp>

namespace tutti {

template <class F>
class Function;

/// How the elements of all ranks are combined. min and max propagate NaN; float16, bfloat16 and float8 accumulate in
/// float32. A function of the program's own is made to an Op by tutti::op (own_op.hpp).
class Op {
 public:
  /// The values travel in signatures: never renumber them.
  enum class Kind : std::uint8_t { sum, mean, product, min, max, band, bor, bxor, premul, own };

  static const Op sum, mean, product, min, max, band, bor, bxor;
  /// The sum of `factor` times each contribution. Elements are multiplied before they are added.
  static constexpr Op premul(double factor) { return Op(Kind::premul, factor); }

  /// A loop over `count` elements: to[i] = inputs[0][i] ⊕ inputs[1][i] ⊕ …, in that order. `to` may be one of the inputs.
  using Loop = void (*)(const void* state, void* to, const void* const* inputs, std::size_t input_count,
                        std::size_t count);
  /// What a function of the program's own is made of.
  struct Own {
    Loop loop = nullptr;
    DType dtype = DType::uint8;
    bool is_commutative = true;
    std::array<std::uint64_t, 3> state{};  // what the function has captured
    friend constexpr bool operator==(const Own&, const Own&) = default;
  };

  constexpr Op() = default;
  constexpr Op(Kind kind) : kind_(kind) {}  // NOLINT: implicit, a kind is an op without a factor
  constexpr explicit Op(const Own& own) : kind_(Kind::own), own_(own) {}
  /// Of tutti::op: a function whose parameters tell what it reduces.
  template <class F>
  Op(const Function<F>& function);  // NOLINT: implicit, so that {.op = tutti::op(f)} reads as it should
  /// A function without tutti::op: says what to write.
  template <class F>
  requires(std::is_class_v<F> && !std::is_same_v<F, Op>) Op(const F&) {  // NOLINT: as above
    static_assert(detail::never<F>, "tutti: a function of your own is given as {.op = tutti::op(function)}");
  }

  [[nodiscard]] constexpr Kind kind() const { return kind_; }
  [[nodiscard]] constexpr double factor() const { return factor_; }
  [[nodiscard]] constexpr const Own& own() const { return own_; }
  /// Whether the operands must be combined in the order of ranks.
  [[nodiscard]] constexpr bool keeps_rank_order() const { return kind_ == Kind::own && !own_.is_commutative; }
  friend constexpr bool operator==(const Op& a, const Op& b) {
    return a.kind_ == b.kind_ && a.factor_ == b.factor_ && (a.kind_ != Kind::own || a.own_ == b.own_);
  }

 private:
  constexpr explicit Op(Kind kind, double factor) : kind_(kind), factor_(factor) {}
  Kind kind_ = Kind::sum;
  double factor_ = 1.0;
  Own own_{};
};

inline constexpr Op Op::sum{Op::Kind::sum}, Op::mean{Op::Kind::mean}, Op::product{Op::Kind::product},
    Op::min{Op::Kind::min}, Op::max{Op::Kind::max}, Op::band{Op::Kind::band}, Op::bor{Op::Kind::bor},
    Op::bxor{Op::Kind::bxor};

/// "sum", "mean", …, "premul(0.5)", "a function of the program's own".
std::string name_of(const Op& op);
/// The inverse for the names without a factor; throws InvalidArgument with the list of names.
Op op_from_name(std::string_view name);

/// Whether `op` makes sense for elements of `dtype`: integers have no mean, complex numbers no order, floats no bits, structs only what the
/// program gives. A function of one's own is for the dtype that it was made for.
constexpr bool applies(const Op& op, DType dtype) {
  if (op.kind() == Op::Kind::own) return dtype == op.own().dtype;
  if (is_struct(dtype)) return false;
  switch (op.kind()) {
    case Op::Kind::sum:
    case Op::Kind::product: return true;
    case Op::Kind::mean:
    case Op::Kind::premul: return is_floating(dtype) || is_complex(dtype);
    case Op::Kind::min:
    case Op::Kind::max: return !is_complex(dtype);
    case Op::Kind::band:
    case Op::Kind::bor:
    case Op::Kind::bxor: return is_integer(dtype) || dtype == DType::boolean;
    case Op::Kind::own: break;
  }
  return false;
}

}  // namespace tutti

#include <tutti/own_op.hpp>
