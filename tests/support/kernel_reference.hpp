// kernel_reference.hpp: for the tests: what kernels must compute, one element at a time, and data that is hard on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstring>
#include <limits>
#include <vector>

#include <tutti/dtype.hpp>
#include <tutti/op.hpp>

#include "base/random.hpp"

namespace tutti::kernel {

inline constexpr Op::Kind all_ops[] = {Op::Kind::sum, Op::Kind::mean, Op::Kind::product,
                                       Op::Kind::min, Op::Kind::max,  Op::Kind::band,
                                       Op::Kind::bor, Op::Kind::bxor, Op::Kind::premul};

/// Runs `body` once for every instruction set that was compiled and that this processor has.
template <class Body>
void on_every_target(Body body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// Calls body with a value of the C++ type behind each dtype.
template <class Body>
void for_every_dtype(Body body) {
  body(bool{});
  body(std::int8_t{});
  body(std::int16_t{});
  body(std::int32_t{});
  body(std::int64_t{});
  body(std::uint8_t{});
  body(std::uint16_t{});
  body(std::uint32_t{});
  body(std::uint64_t{});
  body(float16{});
  body(bfloat16{});
  body(float{});
  body(double{});
  body(std::complex<float>{});
  body(std::complex<double>{});
  body(float8_e4m3{});
  body(float8_e5m2{});
}

template <class T>
concept SmallFloat = Element<T> && is_small_float(dtype_of<T>);
template <class T>
concept ComplexNumber = Element<T> && is_complex(dtype_of<T>);

/// What a type is computed in.
template <class T>
struct Computed {
  using Type = T;
};
template <SmallFloat T>
struct Computed<T> {
  using Type = float;
};

/// a ⊕ b by the rules of kernel.hpp, written without any of its code.
template <class C>
C combine(Op::Kind op, C a, C b) {
  if constexpr (std::is_same_v<C, bool>) {
    if (op == Op::Kind::bxor) return a != b;
    return op == Op::Kind::product || op == Op::Kind::min || op == Op::Kind::band ? a && b : a || b;
  } else if constexpr (ComplexNumber<C>) {
    if (op != Op::Kind::product) return a + b;
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (std::is_floating_point_v<C>) {
    if (op == Op::Kind::product) return a * b;
    if (op != Op::Kind::min && op != Op::Kind::max) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<C>::quiet_NaN();
    if (a == b) return std::signbit(a) == (op == Op::Kind::min) ? a : b;
    return (a < b) == (op == Op::Kind::min) ? a : b;
  } else {
    switch (op) {
      case Op::Kind::product: return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      case Op::Kind::min: return a < b ? a : b;
      case Op::Kind::max: return a > b ? a : b;
      case Op::Kind::band: return static_cast<C>(a & b);
      case Op::Kind::bor: return static_cast<C>(a | b);
      case Op::Kind::bxor: return static_cast<C>(a ^ b);
      default: return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
  }
}

/// The same bits, or NaN on both sides.
template <class T>
bool same(T a, T b) {
  if constexpr (ComplexNumber<T>) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else {
    if constexpr (SmallFloat<T>) {
      if (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b))) return true;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) && std::isnan(b)) return true;
    }
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
}

/// Random bits, every third time something harmless, and now and then a special value.
template <class T>
T difficult(Random& random) {
  if constexpr (ComplexNumber<T>) {
    const auto real = difficult<typename T::value_type>(random);
    return {real, difficult<typename T::value_type>(random)};
  }
  if constexpr (std::is_same_v<T, bool>) return random.chance(0.5);
  if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    constexpr T specials[] = {0,
                              -T{0},
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              Limits::max(),
                              Limits::lowest(),
                              Limits::min(),
                              Limits::denorm_min(),
                              -Limits::denorm_min(),
                              1};
    if (random.chance(0.1)) return specials[random.below(std::size(specials))];
    if (random.chance(0.4)) return static_cast<T>(random.unit() * 20 - 10);
  }
  if constexpr (!ComplexNumber<T> && !std::is_same_v<T, bool>) {
    const std::uint64_t bits = random.next();
    T value{};
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return value;
  }
}

/// `count` elements at a chosen misalignment, with guards around them that show a write out of bounds.
template <class T>
class Elements {
 public:
  Elements(std::size_t count, std::size_t offset)
      : memory_(guard + offset + count * sizeof(T) + guard, filler), offset_(guard + offset), count_(count) {}
  void* data() { return memory_.data() + offset_; }
  [[nodiscard]] const void* data() const { return memory_.data() + offset_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] T get(std::size_t i) const {
    T value;
    std::memcpy(static_cast<void*>(&value), memory_.data() + offset_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void set(std::size_t i, T value) { std::memcpy(memory_.data() + offset_ + i * sizeof(T), &value, sizeof(T)); }
  void randomize(Random& random) {
    for (std::size_t i = 0; i < count_; ++i) set(i, difficult<T>(random));
  }
  [[nodiscard]] bool guards_hold() const {
    const std::size_t end = offset_ + count_ * sizeof(T);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < offset_ || i >= end) && memory_[i] != filler) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr std::byte filler{0xa5};
  std::vector<std::byte> memory_;
  std::size_t offset_;
  std::size_t count_;
};

inline constexpr std::size_t test_counts[] = {0, 1, 3, 15, 16, 17, 64, 1000, 4097};

}  // namespace tutti::kernel
