// dtype.cpp: names of element types, and the conversions of the small floats.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/dtype.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>

#include <tutti/error.hpp>

#include "base/half.hpp"

namespace tutti {
namespace {

constexpr std::array<std::string_view, dtype_count> dtype_names = {
    "bool",    "int8",     "int16",   "int32",   "int64",     "uint8",      "uint16",      "uint32",     "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3", "float8_e5m2"};

}  // namespace

std::string_view name_of(DType dtype) {
  static const auto structs = [] {
    std::array<std::string, 256 - first_struct> names;
    for (std::size_t i = 0; i < names.size(); ++i)
      names[i] = fmt::format("struct of {} bytes", size_of(static_cast<DType>(first_struct + i)));
    return names;
  }();
  const auto index = static_cast<std::size_t>(dtype);
  if (is_struct(dtype)) return structs[index - first_struct];
  return index < dtype_names.size() ? dtype_names[index] : std::string_view("unknown dtype");
}

DType dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < dtype_names.size(); ++i) {
    if (dtype_names[i] == name) return static_cast<DType>(i);
  }
  throw InvalidArgument(
      fmt::format("\"{}\" is not an element type; the names are {}", name, fmt::join(dtype_names, ", ")));
}

float16::float16(float value) : bits(half::encode<half::Float16>(value)) {}
float16::operator float() const { return half::decode<half::Float16>(bits); }
bfloat16::bfloat16(float value) : bits(half::encode<half::BFloat16>(value)) {}
bfloat16::operator float() const { return half::decode<half::BFloat16>(bits); }
float8_e4m3::float8_e4m3(float value) : bits(half::encode<half::Float8E4M3>(value)) {}
float8_e4m3::operator float() const { return half::decode<half::Float8E4M3>(bits); }
float8_e5m2::float8_e5m2(float value) : bits(half::encode<half::Float8E5M2>(value)) {}
float8_e5m2::operator float() const { return half::decode<half::Float8E5M2>(bits); }

}  // namespace tutti
