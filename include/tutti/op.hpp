// op.hpp: the reductions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tutti/dtype.hpp>

namespace tutti {

/// How the elements of all ranks are combined. min and max propagate NaN; float16, bfloat16 and float8 accumulate in
/// float32.
class Op {
 public:
  /// The values travel in signatures: never renumber them.
  enum class Kind : std::uint8_t { sum, mean, product, min, max, band, bor, bxor, premul };

  static const Op sum, mean, product, min, max, band, bor, bxor;
  /// The sum of `factor` times each contribution. Elements are multiplied before they are added.
  static constexpr Op premul(double factor) { return Op(Kind::premul, factor); }

  constexpr Op() = default;
  [[nodiscard]] constexpr Kind kind() const { return kind_; }
  [[nodiscard]] constexpr double factor() const { return factor_; }
  friend constexpr bool operator==(const Op&, const Op&) = default;

 private:
  constexpr explicit Op(Kind kind, double factor = 1.0) : kind_(kind), factor_(factor) {}
  Kind kind_ = Kind::sum;
  double factor_ = 1.0;
};

inline constexpr Op Op::sum{Op::Kind::sum}, Op::mean{Op::Kind::mean}, Op::product{Op::Kind::product},
    Op::min{Op::Kind::min}, Op::max{Op::Kind::max}, Op::band{Op::Kind::band}, Op::bor{Op::Kind::bor},
    Op::bxor{Op::Kind::bxor};

/// "sum", "mean", …, "premul(0.5)".
std::string name_of(const Op& op);
/// The inverse for the names without a factor; throws InvalidArgument with the list of names.
Op op_from_name(std::string_view name);

/// Whether `op` makes sense for elements of `dtype`: integers have no mean, complex numbers no order, floats no bits.
constexpr bool applies(Op::Kind op, DType dtype) {
  switch (op) {
    case Op::Kind::sum:
    case Op::Kind::product: return true;
    case Op::Kind::mean:
    case Op::Kind::premul: return is_floating(dtype) || is_complex(dtype);
    case Op::Kind::min:
    case Op::Kind::max: return !is_complex(dtype);
    case Op::Kind::band:
    case Op::Kind::bor:
    case Op::Kind::bxor: return is_integer(dtype) || dtype == DType::boolean;
  }
  return false;
}

}  // namespace tutti
