// half_test.cpp: the small floats, every bit pattern and every place where rounding could go wrong.
// SPDX-License-Identifier: Apache-2.0
#include "base/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tutti::half {
namespace {

template <class T>
struct BitLayout;
template <>
struct BitLayout<float16> {
  static constexpr int exponent = 5, mantissa = 10;
};
template <>
struct BitLayout<bfloat16> {
  static constexpr int exponent = 8, mantissa = 7;
};
template <>
struct BitLayout<float8_e4m3> {
  static constexpr int exponent = 4, mantissa = 3;
};
template <>
struct BitLayout<float8_e5m2> {
  static constexpr int exponent = 5, mantissa = 2;
};

template <class T>
constexpr bool has_infinity = !std::is_same_v<T, float8_e4m3>;
template <class T>
constexpr int codes = 1 << (8 * sizeof(T));

template <class T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<decltype(value.bits)>(bits);
  return value;
}

// The value of a code by the definition of the format, with none of the code under test.
template <class T>
double meaning(int code) {
  constexpr int e = BitLayout<T>::exponent;
  constexpr int m = BitLayout<T>::mantissa;
  const int exponent = (code >> m) & ((1 << e) - 1);
  const int mantissa = code & ((1 << m) - 1);
  const double sign = (code >> (e + m)) != 0 ? -1 : 1;
  constexpr int bias = (1 << (e - 1)) - 1;
  const bool top = exponent == (1 << e) - 1;
  if (has_infinity<T> && top) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (!has_infinity<T> && top && mantissa == (1 << m) - 1) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - m);
  return sign * std::ldexp((1 << m) + mantissa, exponent - bias - m);
}

template <class T>
struct SmallFloat : testing::Test {};
using SmallFloats = testing::Types<float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(SmallFloat, SmallFloats);

TYPED_TEST(SmallFloat, every_code_means_what_the_format_says) {
  for (int code = 0; code < codes<TypeParam>; ++code) {
    const double expected = meaning<TypeParam>(code);
    const double actual = static_cast<float>(from_bits<TypeParam>(code));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << code;
    } else {
      ASSERT_EQ(actual, expected) << code;
      ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << code;
    }
  }
}

TYPED_TEST(SmallFloat, every_code_survives_the_way_to_float32_and_back) {
  for (int code = 0; code < codes<TypeParam>; ++code) {
    const auto value = from_bits<TypeParam>(code);
    const auto back = TypeParam(static_cast<float>(value));
    if (std::isnan(meaning<TypeParam>(code))) {
      ASSERT_TRUE(std::isnan(meaning<TypeParam>(back.bits))) << code;
      ASSERT_EQ(back.bits >> (8 * sizeof(TypeParam) - 1), code >> (8 * sizeof(TypeParam) - 1)) << code;
    } else {
      ASSERT_EQ(back.bits, code);
    }
  }
}

TYPED_TEST(SmallFloat, between_any_two_neighbours_the_nearer_wins_and_ties_go_to_the_even_code) {
  constexpr int sign_bit = codes<TypeParam> / 2;
  for (int lower = 0; std::isfinite(meaning<TypeParam>(lower + 1)); ++lower) {
    const double middle = (meaning<TypeParam>(lower) + meaning<TypeParam>(lower + 1)) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(tie, middle) << "a float32 holds the middle exactly";
    const int even = (lower & 1) == 0 ? lower : lower + 1;
    ASSERT_EQ(TypeParam(tie).bits, even) << lower;
    ASSERT_EQ(TypeParam(std::nextafter(tie, 0.0f)).bits, lower) << lower;
    ASSERT_EQ(TypeParam(std::nextafter(tie, HUGE_VALF)).bits, lower + 1) << lower;
    ASSERT_EQ(TypeParam(-tie).bits, even | sign_bit) << lower;
  }
}

TYPED_TEST(SmallFloat, what_is_too_large_becomes_infinity_or_nan_where_there_is_none) {
  int largest = 0;
  while (std::isfinite(meaning<TypeParam>(largest + 1))) ++largest;
  // The first number that rounds away from the largest: half a step above it.
  const double half_step = (meaning<TypeParam>(largest) - meaning<TypeParam>(largest - 1)) / 2;
  const auto limit = static_cast<float>(meaning<TypeParam>(largest) + half_step);
  EXPECT_EQ(TypeParam(std::nextafter(limit, 0.0f)).bits, largest);
  for (const float huge : {std::nextafter(limit, HUGE_VALF), std::numeric_limits<float>::max(), HUGE_VALF}) {
    for (const float sign : {1.0f, -1.0f}) {
      const auto result = static_cast<float>(TypeParam(sign * huge));
      if (has_infinity<TypeParam>) {
        EXPECT_EQ(result, sign * HUGE_VALF);
      } else {
        EXPECT_TRUE(std::isnan(result)) << huge;
      }
    }
  }
}

TEST(Float8E4M3, reaches_448_and_rounds_464_down_to_it) {
  EXPECT_EQ(static_cast<float>(float8_e4m3(464.0f)), 448.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(float8_e4m3(465.0f))));
}

#ifdef __FLT16_MAX__  // clang 14 has no _Float16 for this processor
TEST(Float16, agrees_with_the_compiler_over_a_grid_of_all_float32) {
  for (std::uint64_t bits = 0; bits < 0x1'0000'0000; bits += 99'991) {  // a prime: the low bits vary
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) continue;
    __extension__ using Native = _Float16;
    ASSERT_EQ(float16(value).bits, std::bit_cast<std::uint16_t>(static_cast<Native>(value))) << bits;
  }
}
#endif

TEST(RoundToOdd, makes_two_roundings_equal_to_one) {
  // Just above a tie of float16 by less than float32 can see: rounding to nearest twice would lose the excess.
  const double tie = 1.0 + std::ldexp(1.0, -11);
  const double above = tie + std::ldexp(1.0, -40);
  EXPECT_EQ(float16(static_cast<float>(above)).bits, 0x3c00);  // what must not happen
  EXPECT_EQ(float16(round_to_odd(above)).bits, 0x3c01);
  EXPECT_EQ(float16(round_to_odd(-above)).bits, 0xbc01);
  EXPECT_EQ(float16(round_to_odd(tie)).bits, 0x3c00);
  EXPECT_EQ(float16(round_to_odd(tie - std::ldexp(1.0, -40))).bits, 0x3c00);
}

TEST(RoundToOdd, keeps_infinity_nan_and_zero_and_overflows_to_what_overflows_again) {
  EXPECT_EQ(round_to_odd(HUGE_VAL), HUGE_VALF);
  EXPECT_TRUE(std::isnan(round_to_odd(std::nan(""))));
  EXPECT_TRUE(std::signbit(round_to_odd(-0.0)));
  EXPECT_EQ(bfloat16(round_to_odd(1e300)).bits, 0x7f80);
  EXPECT_EQ(bfloat16(round_to_odd(-1e300)).bits, 0xff80);
  EXPECT_EQ(float16(round_to_odd(1e-300)).bits, 0);
  EXPECT_EQ(float16(round_to_odd(-1e-300)).bits, 0x8000);
}

static_assert(encode<Float16>(1.0f) == 0x3c00 && decode<Float16>(0xc000) == -2.0f);
static_assert(encode<BFloat16>(1.0f) == 0x3f80 && decode<Float8E5M2>(0x3c) == 1.0f && encode<Float8E4M3>(1.0f) == 0x38);

}  // namespace
}  // namespace tutti::half
