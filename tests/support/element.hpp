// element.hpp: the inputs of ranks, and the expected results of reductions: a scalar reference, one element at a time.
// SPDX-License-Identifier: Apache-2.0
//
// Contributions are chosen so that every order of reduction is exact in the type that accumulates (float32 for the small
// floats). What then remains is one rounding, and the result is known to the last bit. The reference knows nothing of
// the library's kernels; only the conversions of the small floats are shared, which base_test checks over all bit patterns.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <tutti/op.hpp>

namespace tutti::contract {

/// Which element of which rank's array, in which call.
struct Origin {
  std::uint64_t seed = 0;
  int rank = 0;
  std::int64_t index = 0;
};

/// Writes one element. Without an op it is only moved: any bits will do, NaN and all.
void write_contribution(DType dtype, const std::optional<Op>& op, const Origin& origin, std::byte* to);

/// Reduces the ranks' elements, which lie side by side in rank order. None gives the identity.
void write_reduction(DType dtype, const Op& op, std::span<const std::byte> contributions, std::byte* to);

/// The same bits; or both are NaN; or complex numbers that compare equal.
bool same_element(DType dtype, const std::byte* a, const std::byte* b);

std::string element_text(DType dtype, const std::byte* element);

/// Calls `use` with std::type_identity of the C++ type of `dtype`.
template <class Use>
decltype(auto) with_type(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::boolean: return use(std::type_identity<bool>());
    case DType::int8: return use(std::type_identity<std::int8_t>());
    case DType::int16: return use(std::type_identity<std::int16_t>());
    case DType::int32: return use(std::type_identity<std::int32_t>());
    case DType::int64: return use(std::type_identity<std::int64_t>());
    case DType::uint8: return use(std::type_identity<std::uint8_t>());
    case DType::uint16: return use(std::type_identity<std::uint16_t>());
    case DType::uint32: return use(std::type_identity<std::uint32_t>());
    case DType::uint64: return use(std::type_identity<std::uint64_t>());
    case DType::float16: return use(std::type_identity<float16>());
    case DType::bfloat16: return use(std::type_identity<bfloat16>());
    case DType::float32: return use(std::type_identity<float>());
    case DType::float64: return use(std::type_identity<double>());
    case DType::complex64: return use(std::type_identity<std::complex<float>>());
    case DType::complex128: return use(std::type_identity<std::complex<double>>());
    case DType::float8_e4m3: return use(std::type_identity<float8_e4m3>());
    case DType::float8_e5m2: break;
  }
  return use(std::type_identity<float8_e5m2>());
}

}  // namespace tutti::contract
