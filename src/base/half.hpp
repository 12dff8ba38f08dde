// half.hpp: conversions between float32 and the small floating-point types, bit by bit.
// SPDX-License-Identifier: Apache-2.0
//
// One pair of functions serves all four formats. Rules, the same on every machine and in the vector kernels:
//   1. to narrow is to round to nearest, ties to even, once; subnormals are kept, whatever the thread's flush modes;
//   2. overflow gives infinity, or NaN in the one format without infinity (e4m3fn);
//   3. NaN stays NaN and keeps its sign; float16 and bfloat16 keep the upper payload bits and become quiet where they
//      are rounded, as F16C and AVX512-BF16 do; the 8-bit types have one canonical NaN per sign.
#pragma once

#include <bit>
#include <cstdint>

#include <tutti/dtype.hpp>

namespace tutti::half {

inline constexpr std::uint32_t float_infinity = 0x7f800000u;
inline constexpr std::uint32_t float_quiet_bit = 0x00400000u;
inline constexpr std::uint32_t float_magnitude = 0x7fffffffu;

/// A format with a sign, `exponent_bits` and `mantissa_bits`; all its constants follow from these.
template <class Storage, int exponent_bits, int mantissa_bits, bool finite_only>
struct Format {
  using Bits = Storage;
  static constexpr int mantissa = mantissa_bits;
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int dropped = 23 - mantissa_bits;  // mantissa bits that float32 has in addition
  static constexpr std::uint32_t rebias = std::uint32_t(127 - bias) << 23;
  static constexpr int sign_shift = 31 - (exponent_bits + mantissa_bits);
  static constexpr std::uint32_t magnitude = (1u << (exponent_bits + mantissa_bits)) - 1;
  static constexpr bool has_infinity = !finite_only;
  static constexpr bool same_exponent = exponent_bits == 8;  // bfloat16: its subnormals are float32's
  /// The first code that is not finite: infinity, or the NaN of a format without infinity.
  static constexpr std::uint32_t overflow = finite_only ? magnitude : ((1u << exponent_bits) - 1) << mantissa_bits;
  /// What a NaN becomes before payload bits are added.
  static constexpr std::uint32_t nan = finite_only ? magnitude : overflow | 1u << (mantissa_bits - 1);
  static constexpr bool keeps_payload = sizeof(Storage) == 2;
  /// The smallest normal number, as float32 bits.
  static constexpr std::uint32_t least_normal = same_exponent ? 0 : std::uint32_t(128 - bias) << 23;
  /// The float32 whose unit in the last place is the smallest subnormal: adding it rounds there.
  static constexpr std::uint32_t subnormal_magic =
      same_exponent ? 0 : std::uint32_t(127 + 24 - bias - mantissa_bits) << 23;
  /// The smallest subnormal as float32 bits.
  static constexpr std::uint32_t least_subnormal = same_exponent ? 0 : std::uint32_t(128 - bias - mantissa_bits) << 23;
};

using Float16 = Format<std::uint16_t, 5, 10, false>;
using BFloat16 = Format<std::uint16_t, 8, 7, false>;
using Float8E4M3 = Format<std::uint8_t, 4, 3, true>;
using Float8E5M2 = Format<std::uint8_t, 5, 2, false>;

template <class F>
constexpr typename F::Bits encode(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & float_magnitude;
  const std::uint32_t sign = (bits & ~float_magnitude) >> F::sign_shift;
  std::uint32_t result = 0;
  if (magnitude > float_infinity) {
    result = F::nan | (F::keeps_payload ? (magnitude >> F::dropped) & F::magnitude : 0);
  } else if (magnitude < F::least_normal) {
    const float rounded = std::bit_cast<float>(magnitude) + std::bit_cast<float>(F::subnormal_magic);
    result = std::bit_cast<std::uint32_t>(rounded) - F::subnormal_magic;
  } else {
    const std::uint32_t odd = (magnitude >> F::dropped) & 1;
    result = (magnitude - F::rebias + (1u << (F::dropped - 1)) - 1 + odd) >> F::dropped;
    if (result > F::overflow) result = F::overflow;
  }
  return static_cast<typename F::Bits>(sign | result);
}

template <class F>
constexpr float decode(typename F::Bits code) {
  if constexpr (F::same_exponent) return std::bit_cast<float>(std::uint32_t(code) << F::dropped);
  const std::uint32_t magnitude = code & F::magnitude;
  const std::uint32_t sign = (code & ~F::magnitude) << F::sign_shift;
  std::uint32_t result = magnitude << F::dropped;
  if (magnitude >= F::overflow) {
    result |= float_infinity;
    if (result != float_infinity) result |= float_quiet_bit;
    if (!F::has_infinity) result = float_infinity | float_quiet_bit;
  } else if (magnitude < (1u << F::mantissa)) {
    result = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * std::bit_cast<float>(F::least_subnormal));
  } else {
    result += F::rebias;
  }
  return std::bit_cast<float>(sign | result);
}

template <class T>
struct FormatOf;
template <>
struct FormatOf<float16> : Float16 {};
template <>
struct FormatOf<bfloat16> : BFloat16 {};
template <>
struct FormatOf<float8_e4m3> : Float8E4M3 {};
template <>
struct FormatOf<float8_e5m2> : Float8E5M2 {};

/// float64 to float32, rounded to odd: a second rounding to a format at least two bits narrower then gives what one
/// rounding from float64 would have given.
constexpr float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  const bool away = (value < 0) ? back < value : back > value;  // rounded away from zero (also to infinity): step back
  const std::uint32_t truncated = away ? bits - 1 : bits;
  return std::bit_cast<float>(truncated | 1u);
}

}  // namespace tutti::half
