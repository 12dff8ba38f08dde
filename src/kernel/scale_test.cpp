// scale_test.cpp: scaling, dividing, casting and filling, against plain loops.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include <tutti/error.hpp>

#include "base/half.hpp"
#include "kernel/kernel.hpp"
#include "tests/support/kernel_reference.hpp"

namespace tutti::kernel {
namespace {

enum class Number { factor, divisor };

template <class T>
T scaled(T value, double number, Number use) {
  if constexpr (ComplexNumber<T>) {
    return {scaled(value.real(), number, use), scaled(value.imag(), number, use)};
  } else {
    using C = typename Computed<T>::Type;
    const C operand = static_cast<C>(number);
    return static_cast<T>(use == Number::divisor ? static_cast<C>(value) / operand : static_cast<C>(value) * operand);
  }
}

template <class T>
void check_scaling(std::size_t count, std::size_t offset, double number) {
  Random random(count);
  Elements<T> from(count, offset);
  from.randomize(random);
  const Elements<T> before = from;
  Elements<T> to(count, 2 * offset);
  divide(dtype_of<T>, to.data(), from.data(), number, static_cast<std::int64_t>(count));
  scale(dtype_of<T>, from.data(), from.data(), number, static_cast<std::int64_t>(count));  // in place
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(same(to.get(i), scaled(before.get(i), number, Number::divisor)))
        << name_of(dtype_of<T>) << " divided, " << i;
    ASSERT_TRUE(same(from.get(i), scaled(before.get(i), number, Number::factor)))
        << name_of(dtype_of<T>) << " multiplied, " << i;
  }
  ASSERT_TRUE(to.guards_hold() && from.guards_hold());
}

TEST(Scale, multiplies_and_divides_every_floating_point_type) {
  on_every_target([] {
    for_every_dtype([]<class T>(T) {
      if constexpr (is_floating(dtype_of<T>) || is_complex(dtype_of<T>)) {
        for (const std::size_t count : test_counts) {
          for (const std::size_t offset : {0, 1}) {
            ASSERT_NO_FATAL_FAILURE(check_scaling<T>(count, offset, 3.0));
            ASSERT_NO_FATAL_FAILURE(check_scaling<T>(count, offset, 0.1));
          }
        }
      }
    });
  });
}

TEST(Divide, gives_back_the_value_of_which_n_were_summed) {
  for (const float n : {3.0f, 7.0f, 41.0f}) {
    std::array<float, 3> value = {n * 0.7f, n * 1.0f, n * 3.0f};
    divide(DType::float32, value.data(), value.data(), n, 3);
    EXPECT_EQ(value[1], 1.0f);
    EXPECT_EQ(value[2], 3.0f);
  }
}

TEST(Scale, refuses_integers) {
  std::array<int, 2> value = {1, 2};
  EXPECT_THROW(scale(DType::int32, value.data(), value.data(), 2, 2), InvalidArgument);
  EXPECT_THROW(divide(DType::boolean, value.data(), value.data(), 2, 2), InvalidArgument);
  EXPECT_THROW(scale(DType::float32, value.data(), value.data(), 2, -2), InvalidArgument);
}

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<From, double> && SmallFloat<To>) {
    return To(half::round_to_odd(value));
  } else if constexpr (SmallFloat<From> || SmallFloat<To>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void check_cast(std::size_t count, std::size_t offset) {
  Random random(count);
  Elements<From> from(count, offset);
  from.randomize(random);
  Elements<To> to(count, offset);
  cast(dtype_of<To>, to.data(), dtype_of<From>, from.data(), static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, From>) {
      ASSERT_TRUE(same(to.get(i), from.get(i)));
    } else {
      ASSERT_TRUE(same(to.get(i), converted<To>(from.get(i))))
          << name_of(dtype_of<From>) << " to " << name_of(dtype_of<To>) << ", element " << i << " of " << count;
    }
  }
  ASSERT_TRUE(to.guards_hold());
}

TEST(Cast, converts_between_all_real_floating_point_types) {
  on_every_target([] {
    for_every_dtype([]<class From>(From) {
      if constexpr (is_floating(dtype_of<From>)) {
        for_every_dtype([]<class To>(To) {
          if constexpr (is_floating(dtype_of<To>)) {
            for (const std::size_t count : test_counts) {
              ASSERT_NO_FATAL_FAILURE((check_cast<To, From>(count, 0)));
              ASSERT_NO_FATAL_FAILURE((check_cast<To, From>(count, 1)));
            }
          }
        });
      }
    });
  });
}

TEST(Cast, agrees_with_the_scalar_conversion_for_a_grid_of_all_float32) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 0x1'0000'0000; bits += 65'521) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  on_every_target([&] {
    for_every_dtype([&]<class To>(To) {
      if constexpr (SmallFloat<To>) {
        std::vector<To> to(values.size());
        cast(dtype_of<To>, to.data(), DType::float32, values.data(), static_cast<std::int64_t>(values.size()));
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(to[i].bits, To(values[i]).bits) << name_of(dtype_of<To>) << " of " << values[i];  // NaNs too
        }
      }
    });
  });
}

TEST(Cast, rounds_float64_to_small_floats_only_once) {
  const std::array<double, 1> above_a_tie = {1.0 + 0x1p-11 + 0x1p-40};
  std::array<float16, 1> to{};
  cast(DType::float16, to.data(), DType::float64, above_a_tie.data(), 1);
  EXPECT_EQ(to[0].bits, 0x3c01);
}

TEST(Cast, refuses_what_is_not_a_real_floating_point_type) {
  std::array<std::byte, 16> memory{};
  EXPECT_THROW(cast(DType::int32, memory.data(), DType::float32, memory.data(), 1), InvalidArgument);
  EXPECT_THROW(cast(DType::float32, memory.data(), DType::complex64, memory.data(), 1), InvalidArgument);
  cast(DType::float32, nullptr, DType::float16, nullptr, 0);
}

// Equal as numbers: 0 + −0 is 0, and NaN stays NaN.
template <class T>
bool unchanged(T before, T after) {
  if constexpr (ComplexNumber<T>) {
    return unchanged(before.real(), after.real()) && unchanged(before.imag(), after.imag());
  } else if constexpr (std::is_floating_point_v<T> || SmallFloat<T>) {
    using C = typename Computed<T>::Type;
    return same(before, after) || static_cast<C>(before) == static_cast<C>(after);
  } else {
    return same(before, after);
  }
}

// Infinity × (1 + 0i) is not a number by the plain formula.
template <class T>
bool has_identity(Op::Kind op, T value) {
  if constexpr (ComplexNumber<T>) {
    return op != Op::Kind::product || (std::isfinite(value.real()) && std::isfinite(value.imag()));
  }
  return true;
}

template <class T>
void check_identity(Op::Kind op) {
  Random random(11);
  constexpr std::size_t count = 777;
  Elements<T> identity(count, 1);
  fill_identity(op, dtype_of<T>, identity.data(), static_cast<std::int64_t>(count));
  ASSERT_TRUE(identity.guards_hold());
  Elements<T> value(count, 0);
  value.randomize(random);
  Elements<T> to(count, 0);
  reduce(op, dtype_of<T>, to.data(), identity.data(), value.data(), static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (!has_identity(op, value.get(i))) continue;
    ASSERT_TRUE(unchanged(value.get(i), to.get(i))) << name_of(dtype_of<T>) << ", reduction " << int(op) << ", " << i;
  }
}

TEST(FillIdentity, gives_the_value_that_changes_nothing) {
  for_every_dtype([]<class T>(T) {
    for (const Op::Kind op : all_ops) {
      if (!applies(op, dtype_of<T>)) continue;
      ASSERT_NO_FATAL_FAILURE(check_identity<T>(op));
    }
  });
}

TEST(FillIdentity, refuses_what_makes_no_sense_and_fills_nothing_for_a_count_of_zero) {
  std::array<float, 1> value = {5};
  EXPECT_THROW(fill_identity(Op::Kind::bor, DType::float32, value.data(), 1), InvalidArgument);
  fill_identity(Op::Kind::sum, DType::float32, value.data(), 0);
  EXPECT_EQ(value[0], 5);
  fill_zero(DType::float32, value.data(), 1);
  EXPECT_EQ(value[0], 0);
}

}  // namespace
}  // namespace tutti::kernel
