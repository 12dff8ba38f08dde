// element.cpp: the inputs of ranks, and the expected results of reductions.
// SPDX-License-Identifier: Apache-2.0
#include "element.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>

#include "base/hash.hpp"

namespace tutti::contract {
namespace {

using Kind = Op::Kind;

template <class T>
inline constexpr bool is_complex_type = is_complex(dtype_of<T>);
template <class T>
inline constexpr bool is_small = is_small_float(dtype_of<T>);
template <class T>
inline constexpr bool is_real = is_floating(dtype_of<T>);

template <class T>
double widen(T value) {
  if constexpr (is_small<T>) return static_cast<double>(static_cast<float>(value));
  else return static_cast<double>(value);
}

template <class T>
T narrow(double value) {
  if constexpr (is_small<T>) return T(static_cast<float>(value));
  else return static_cast<T>(value);
}

std::uint64_t noise_at(const Origin& origin) {
  return scramble(origin.seed ^ scramble(std::uint64_t(origin.rank) + 1) ^ scramble(std::uint64_t(origin.index) << 20));
}

/// Few significant bits, so that sums over many ranks stay exact; product factors stay near 1.
template <class T>
double real_contribution(Kind kind, std::uint64_t noise) {
  constexpr double factors[] = {-1.5, -1, -0.5, 0.5, 1, 1, 1, 1.5};
  if (kind == Kind::product) return factors[noise % 8];
  if (kind == Kind::min || kind == Kind::max) {
    if (noise % 31 == 0) return std::numeric_limits<double>::quiet_NaN();
    if (noise % 29 == 0) return noise % 58 == 0 ? 0.0 : -0.0;
  }
  constexpr std::int64_t steps = dtype_of<T> == DType::float8_e5m2 ? 7 : dtype_of<T> == DType::float8_e4m3 ? 15 : 127;
  return static_cast<double>(static_cast<std::int64_t>(noise % (2 * steps + 1)) - steps) / 4;
}

template <class T>
T contribution(Kind kind, std::uint64_t noise) {
  if constexpr (std::is_same_v<T, bool>) {
    return noise % 3 == 0;
  } else if constexpr (is_complex_type<T>) {
    using Part = typename T::value_type;
    constexpr double units[][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 1}};
    if (kind == Kind::product) return {static_cast<Part>(units[noise % 5][0]), static_cast<Part>(units[noise % 5][1])};
    return {static_cast<Part>(real_contribution<float>(kind, noise)),
            static_cast<Part>(real_contribution<float>(kind, noise >> 20))};
  } else if constexpr (is_real<T>) {
    return narrow<T>(real_contribution<T>(kind, noise));
  } else {
    return static_cast<T>(kind == Kind::band ? noise | (noise >> 7) | (noise << 11) : noise);
  }
}

double combine(Kind kind, double a, double b) {
  switch (kind) {
    case Kind::product: return a * b;
    case Kind::min:
    case Kind::max: {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
      const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
      return a_is_less == (kind == Kind::min) ? a : b;
    }
    default: return a + b;
  }
}

template <class T>
T reduce_reals(const Op& op, std::span<const T> values) {
  const double factor = op.kind() == Kind::premul ? op.factor() : 1;
  double result = widen(values[0]) * factor;
  for (const T& value : values.subspan(1)) result = combine(op.kind(), result, widen(value) * factor);
  if (op.kind() != Kind::mean) return narrow<T>(result);
  if constexpr (std::is_same_v<T, double>) return result / static_cast<double>(values.size());
  else return narrow<T>(static_cast<double>(static_cast<float>(result) / static_cast<float>(values.size())));
}

template <class T>
T reduce_complex(const Op& op, std::span<const T> values) {
  using Part = typename T::value_type;
  const double factor = op.kind() == Kind::premul ? op.factor() : 1;
  std::complex<double> result = std::complex<double>(values[0]) * factor;
  for (const T& value : values.subspan(1)) {
    const std::complex<double> other = std::complex<double>(value) * factor;
    result = op.kind() == Kind::product ? result * other : result + other;
  }
  const Part divisor = op.kind() == Kind::mean ? static_cast<Part>(values.size()) : Part(1);
  return {static_cast<Part>(result.real()) / divisor, static_cast<Part>(result.imag()) / divisor};
}

bool reduce_bools(Kind kind, std::span<const bool> values) {
  bool all = true, any = false, odd = false;
  for (const bool value : values) {
    all = all && value;
    any = any || value;
    odd = odd != value;
  }
  if (kind == Kind::bxor) return odd;
  return kind == Kind::product || kind == Kind::min || kind == Kind::band ? all : any;
}

template <class T>
T reduce_integers(Kind kind, std::span<const T> values) {
  using Unsigned = std::make_unsigned_t<T>;
  T result = values[0];
  for (const T value : values.subspan(1)) {
    const auto a = std::uint64_t(Unsigned(result)), b = std::uint64_t(Unsigned(value));
    switch (kind) {
      case Kind::product: result = static_cast<T>(a * b); break;
      case Kind::min: result = std::min(result, value); break;
      case Kind::max: result = std::max(result, value); break;
      case Kind::band: result = static_cast<T>(a & b); break;
      case Kind::bor: result = static_cast<T>(a | b); break;
      case Kind::bxor: result = static_cast<T>(a ^ b); break;
      default: result = static_cast<T>(a + b);
    }
  }
  return result;
}

template <class T>
T identity(Kind kind) {
  const bool is_product = kind == Kind::product, is_min = kind == Kind::min, is_max = kind == Kind::max;
  if constexpr (std::is_same_v<T, bool>) {
    return is_product || is_min || kind == Kind::band;
  } else if constexpr (is_complex_type<T>) {
    return is_product ? T(1) : T(0);
  } else if constexpr (is_real<T>) {
    const double largest = dtype_of<T> == DType::float8_e4m3 ? 448 : std::numeric_limits<double>::infinity();
    return narrow<T>(is_min ? largest : is_max ? -largest : is_product ? 1 : 0);
  } else {
    if (is_min) return std::numeric_limits<T>::max();
    if (is_max) return std::numeric_limits<T>::lowest();
    return kind == Kind::band ? static_cast<T>(~std::uint64_t{0}) : static_cast<T>(is_product ? 1 : 0);
  }
}

template <class T>
T reduction(const Op& op, std::span<const T> values) {
  if (values.empty()) return identity<T>(op.kind());
  if constexpr (std::is_same_v<T, bool>) return reduce_bools(op.kind(), values);
  else if constexpr (is_complex_type<T>) return reduce_complex<T>(op, values);
  else if constexpr (is_real<T>) return reduce_reals<T>(op, values);
  else return reduce_integers<T>(op.kind(), values);
}

}  // namespace

void write_contribution(DType dtype, const std::optional<Op>& op, const Origin& origin, std::byte* to) {
  const std::uint64_t noise = noise_at(origin);
  if (!op) {
    const std::uint64_t bits[2] = {dtype == DType::boolean ? noise & 1 : noise, ~noise};
    std::memcpy(to, bits, size_of(dtype));
    return;
  }
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    const T value = contribution<T>(op->kind(), noise);
    std::memcpy(to, &value, sizeof value);
  });
}

void write_reduction(DType dtype, const Op& op, std::span<const std::byte> contributions, std::byte* to) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    const std::size_t count = contributions.size() / sizeof(T);
    const auto values = std::make_unique<T[]>(count);
    if (count > 0) std::memcpy(static_cast<void*>(values.get()), contributions.data(), contributions.size());
    const T value = reduction<T>(op, std::span<const T>(values.get(), count));
    std::memcpy(to, &value, sizeof value);
  });
}

bool same_element(DType dtype, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, size_of(dtype)) == 0) return true;
  return with_type(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_real<T>) {
      T x, y;
      std::memcpy(&x, a, sizeof x);
      std::memcpy(&y, b, sizeof y);
      return std::isnan(widen(x)) && std::isnan(widen(y));
    } else if constexpr (is_complex_type<T>) {  // the sign of a product's zero depends on the order of its factors
      T x, y;
      std::memcpy(&x, a, sizeof x);
      std::memcpy(&y, b, sizeof y);
      return x == y;
    } else {
      return false;
    }
  });
}

std::string element_text(DType dtype, const std::byte* element) {
  return with_type(dtype, [&]<class T>(std::type_identity<T>) {
    std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T> value;
    std::memcpy(&value, element, sizeof value);
    if constexpr (is_complex_type<T>) return fmt::format("{}{:+}i", value.real(), value.imag());
    else if constexpr (is_real<T>) return fmt::format("{}", widen(value));
    else return fmt::format("{}", +value);
  });
}

}  // namespace tutti::contract
