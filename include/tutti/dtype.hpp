// dtype.hpp: the element types every verb understands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tutti {

/// Storage of the small floating-point types. They hold bits; arithmetic on them is done in float32 by the kernels.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value);
  explicit operator float() const;
  friend bool operator==(float16, float16) = default;
};
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
  friend bool operator==(bfloat16, bfloat16) = default;
};
struct float8_e4m3 {  // the "fn" variant: no infinity, one NaN pattern per sign, largest value 448
  std::uint8_t bits = 0;
  float8_e4m3() = default;
  explicit float8_e4m3(float value);
  explicit operator float() const;
  friend bool operator==(float8_e4m3, float8_e4m3) = default;
};
struct float8_e5m2 {
  std::uint8_t bits = 0;
  float8_e5m2() = default;
  explicit float8_e5m2(float value);
  explicit operator float() const;
  friend bool operator==(float8_e5m2, float8_e5m2) = default;
};

/// The values travel in signatures and frames: never renumber them.
enum class DType : std::uint8_t {
  boolean = 0,
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  uint16 = 6,
  uint32 = 7,
  uint64 = 8,
  float16 = 9,
  bfloat16 = 10,
  float32 = 11,
  float64 = 12,
  complex64 = 13,
  complex128 = 14,
  float8_e4m3 = 15,
  float8_e5m2 = 16,
};
inline constexpr int dtype_count = 17;  // of numbers

/// Elements that are no numbers (structs) are known by their size: the values from `first_struct` on stand for 1, 2, …, 128 bytes and
/// then for 136, 144, …, 896. They move as numbers do, and are reduced by the program's own functions.
inline constexpr int first_struct = 32;
inline constexpr std::size_t max_struct_bytes = 896;

namespace detail {
inline constexpr std::array<std::uint16_t, 256> dtype_sizes = [] {
  std::array<std::uint16_t, 256> sizes = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};
  for (std::size_t i = 1; i <= 128; ++i) sizes[first_struct - 1 + i] = static_cast<std::uint16_t>(i);
  for (std::size_t i = 1; i <= 96; ++i) sizes[first_struct + 127 + i] = static_cast<std::uint16_t>(128 + 8 * i);
  return sizes;
}();
}  // namespace detail

/// Bytes of one element; 0 for a value that is no dtype.
constexpr std::size_t size_of(DType dtype) { return detail::dtype_sizes[static_cast<std::uint8_t>(dtype)]; }
constexpr bool is_dtype(DType dtype) { return size_of(dtype) != 0; }
constexpr bool is_struct(DType dtype) { return static_cast<int>(dtype) >= first_struct; }
constexpr bool has_struct_of(std::size_t bytes) {
  return bytes > 0 && bytes <= max_struct_bytes && (bytes <= 128 || bytes % 8 == 0);
}
/// For sizes that has_struct_of().
constexpr DType struct_of(std::size_t bytes) {
  return static_cast<DType>(first_struct + (bytes <= 128 ? bytes - 1 : 127 + (bytes - 128) / 8));
}

/// The name users see: "float32", "bool", "float8_e4m3", "struct of 16 bytes", …
std::string_view name_of(DType dtype);
/// The inverse of name_of; throws InvalidArgument with the list of names for one it does not know.
DType dtype_from_name(std::string_view name);

constexpr bool is_complex(DType d) { return d == DType::complex64 || d == DType::complex128; }
constexpr bool is_small_float(DType d) {
  return d == DType::float16 || d == DType::bfloat16 || d == DType::float8_e4m3 || d == DType::float8_e5m2;
}
constexpr bool is_floating(DType d) { return is_small_float(d) || d == DType::float32 || d == DType::float64; }
constexpr bool is_integer(DType d) { return d >= DType::int8 && d <= DType::uint64; }

namespace detail {
template <class T>
consteval int dtype_index() {
  if constexpr (std::is_same_v<T, bool>) return 0;
  else if constexpr (std::is_same_v<T, tutti::float16>) return 9;
  else if constexpr (std::is_same_v<T, tutti::bfloat16>) return 10;
  else if constexpr (std::is_same_v<T, float>) return 11;
  else if constexpr (std::is_same_v<T, double>) return 12;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return 13;
  else if constexpr (std::is_same_v<T, std::complex<double>>) return 14;
  else if constexpr (std::is_same_v<T, tutti::float8_e4m3>) return 15;
  else if constexpr (std::is_same_v<T, tutti::float8_e5m2>) return 16;
  else if constexpr (std::is_integral_v<T>) {  // by width, so that long and long long both fit
    constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return (std::is_signed_v<T> ? 1 : 5) + width;
  } else return -1;
}
}  // namespace detail

/// A type that the built-in reductions know.
template <class T>
concept Number = (detail::dtype_index<std::remove_cv_t<T>>() >= 0);

template <Number T>
inline constexpr DType dtype_of = static_cast<DType>(detail::dtype_index<std::remove_cv_t<T>>());

}  // namespace tutti
