// quantise.hpp: float32 in blocks of 8-bit integers, a quarter of the bytes, with error feedback.
// SPDX-License-Identifier: Apache-2.0
//
// A block of 256 elements becomes one record: a float32 scale, then 256 signed bytes; value ≈ scale × byte. The last
// block of an array is filled up with zeros, so that records can be cut apart and joined. A block that holds NaN or
// infinity has the scale NaN, so that a broken gradient is seen as one on every rank. Cost: one pass over memory each.
#pragma once

#include <cstdint>

namespace tutti::kernel {

inline constexpr std::int64_t quantised_block = 256;
inline constexpr std::int64_t quantised_record_bytes = quantised_block + 4;

/// Bytes of the records for `count` elements.
constexpr std::int64_t quantised_bytes(std::int64_t count) {
  return (count + quantised_block - 1) / quantised_block * quantised_record_bytes;
}

/// Records of from + residual; the residual becomes the quantisation error. A null residual is ignored.
void quantise(const float* from, float* residual, void* records, std::int64_t count);
/// to = the decoded records.
void dequantise(const void* records, float* to, std::int64_t count);
/// to += the decoded records.
void dequantise_add(const void* records, float* to, std::int64_t count);

}  // namespace tutti::kernel
