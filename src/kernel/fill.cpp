// fill.cpp: fills memory with zeros or with the identity of a reduction.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

#include "kernel/arguments.hpp"
#include "kernel/kernel.hpp"

namespace tutti::kernel {
namespace {

// One element of `dtype` that holds `value`, written to `to`.
template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
void put_limit(std::byte* to, Op::Kind op) {
  using Limits = std::numeric_limits<T>;
  constexpr T highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr T lowest = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  put(to, op == Op::Kind::min ? highest : lowest);
}

template <class T>
void put_small(std::byte* to, Op::Kind op, float highest) {
  put(to, T(op == Op::Kind::min ? highest : -highest));
}

void put_one(std::byte* to, DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::int8:
    case DType::uint8: return put<std::uint8_t>(to, 1);
    case DType::int16:
    case DType::uint16: return put<std::uint16_t>(to, 1);
    case DType::int32:
    case DType::uint32: return put<std::uint32_t>(to, 1);
    case DType::int64:
    case DType::uint64: return put<std::uint64_t>(to, 1);
    case DType::float16: return put(to, float16(1.0f));
    case DType::bfloat16: return put(to, bfloat16(1.0f));
    case DType::float32: return put(to, 1.0f);
    case DType::float64: return put(to, 1.0);
    case DType::complex64: return put(to, std::complex<float>(1));
    case DType::complex128: return put(to, std::complex<double>(1));
    case DType::float8_e4m3: return put(to, float8_e4m3(1.0f));
    case DType::float8_e5m2: return put(to, float8_e5m2(1.0f));
  }
}

void put_extreme(std::byte* to, Op::Kind op, DType dtype) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (dtype) {
    case DType::boolean: return put<std::uint8_t>(to, op == Op::Kind::min ? 1 : 0);
    case DType::int8: return put_limit<std::int8_t>(to, op);
    case DType::int16: return put_limit<std::int16_t>(to, op);
    case DType::int32: return put_limit<std::int32_t>(to, op);
    case DType::int64: return put_limit<std::int64_t>(to, op);
    case DType::uint8: return put_limit<std::uint8_t>(to, op);
    case DType::uint16: return put_limit<std::uint16_t>(to, op);
    case DType::uint32: return put_limit<std::uint32_t>(to, op);
    case DType::uint64: return put_limit<std::uint64_t>(to, op);
    case DType::float32: return put_limit<float>(to, op);
    case DType::float64: return put_limit<double>(to, op);
    case DType::float16: return put_small<float16>(to, op, infinity);
    case DType::bfloat16: return put_small<bfloat16>(to, op, infinity);
    case DType::float8_e4m3: return put_small<float8_e4m3>(to, op, 448.0f);  // it has no infinity
    case DType::float8_e5m2: return put_small<float8_e5m2>(to, op, infinity);
    case DType::complex64:
    case DType::complex128: return;  // no order, so applies() has refused
  }
}

// Fills `bytes` bytes with copies of their first `element` bytes, doubling what is there.
void repeat(std::byte* to, std::size_t element, std::size_t bytes) {
  for (std::size_t done = element; done < bytes; done *= 2) std::memcpy(to + done, to, std::min(done, bytes - done));
}

}  // namespace

void fill_zero(DType dtype, void* to, std::int64_t count) {
  const std::size_t bytes = checked_bytes("fill", dtype, count);
  if (bytes > 0) std::memset(to, 0, bytes);  // all bits zero is zero in every dtype
}

void fill_identity(const Op& op, DType dtype, void* to, std::int64_t count) {
  const std::size_t bytes = checked_bytes("fill", dtype, count);
  require_applies("fill with the identity of", op, dtype);
  if (bytes == 0) return;
  auto* first = static_cast<std::byte*>(to);
  switch (op.kind()) {
    case Op::Kind::product: put_one(first, dtype); break;
    case Op::Kind::min:
    case Op::Kind::max: put_extreme(first, op.kind(), dtype); break;
    case Op::Kind::band: std::memset(to, dtype == DType::boolean ? 1 : 0xff, bytes); return;
    default: std::memset(to, 0, bytes); return;
  }
  repeat(first, size_of(dtype), bytes);
}

}  // namespace tutti::kernel
