// cast.cpp: between the real floating-point types, by way of float32.
// SPDX-License-Identifier: Apache-2.0
//
// A block of float32 on the stack stands between the two types; where one of them is float32, memory takes its place.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cast.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/highway.h>

#include <algorithm>

#include "kernel/arguments.hpp"
#include "kernel/kernel.hpp"
#include "kernel/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernel {
namespace {
namespace HWY_NAMESPACE {
using namespace ::tutti::kernel::HWY_NAMESPACE;  // lanes

// From is computed in float32, so is To: what one loads, the other can store.
template <class From, class To>
void convert_steps(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t step = From::step();
  if (count < step) {
    for (std::size_t i = 0; i < count; ++i) {
      To::One::store(From::One::load(from + i * From::bytes), to + i * To::bytes);
    }
    return;
  }
  for (std::size_t i = 0; i < count - step; i += step) {
    To::store(From::load(from + i * From::bytes), to + i * To::bytes);
  }
  const std::size_t last = count - step;  // overlaps the step before it
  To::store(From::load(from + last * From::bytes), to + last * To::bytes);
}

void widen_dispatched(DType from_type, const std::byte* from, std::byte* to, std::size_t count) {
  switch (from_type) {
    case DType::float16: return convert_steps<Small<half::Float16>, Plain<float>>(from, to, count);
    case DType::bfloat16: return convert_steps<Small<half::BFloat16>, Plain<float>>(from, to, count);
    case DType::float8_e4m3: return convert_steps<Small<half::Float8E4M3>, Plain<float>>(from, to, count);
    default: return convert_steps<Small<half::Float8E5M2>, Plain<float>>(from, to, count);
  }
}

void narrow_dispatched(DType to_type, const std::byte* from, std::byte* to, std::size_t count) {
  switch (to_type) {
    case DType::float16: return convert_steps<Plain<float>, Small<half::Float16>>(from, to, count);
    case DType::bfloat16: return convert_steps<Plain<float>, Small<half::BFloat16>>(from, to, count);
    case DType::float8_e4m3: return convert_steps<Plain<float>, Small<half::Float8E4M3>>(from, to, count);
    default: return convert_steps<Plain<float>, Small<half::Float8E5M2>>(from, to, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {
namespace {

HWY_EXPORT(widen_dispatched);
HWY_EXPORT(narrow_dispatched);

constexpr std::size_t block_count = 1024;  // 4 KiB: stays in the first cache

float nearest(double value) { return static_cast<float>(value); }

// The compiler makes vectors of this; memcpy because memory may have any alignment.
template <class From, class To, class Convert>
void convert_each(const std::byte* from, std::byte* to, std::size_t count, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    const To converted = convert(value);
    std::memcpy(to + i * sizeof converted, &converted, sizeof converted);
  }
}

// Any type to float32. On the way to a smaller type float64 is rounded to odd, so that it is rounded only once in effect.
void widen(DType from_type, const std::byte* from, std::byte* to, std::size_t count, DType final_type) {
  if (from_type == DType::float32) {
    std::memcpy(to, from, count * sizeof(float));
  } else if (from_type == DType::float64) {
    convert_each<double, float>(from, to, count, final_type == DType::float32 ? nearest : half::round_to_odd);
  } else {
    HWY_DYNAMIC_DISPATCH(widen_dispatched)(from_type, from, to, count);
  }
}

void narrow(DType to_type, const std::byte* from, std::byte* to, std::size_t count) {
  if (to_type == DType::float64) {
    convert_each<float, double>(from, to, count, [](float value) { return static_cast<double>(value); });
  } else {
    HWY_DYNAMIC_DISPATCH(narrow_dispatched)(to_type, from, to, count);
  }
}

void require_real(DType dtype) {
  if (is_floating(dtype)) return;
  throw InvalidArgument(
      fmt::format("cannot cast {}: only the real floating-point types are converted", name_of(dtype)));
}

}  // namespace

void cast(DType to_type, void* to, DType from_type, const void* from, std::int64_t count) {
  const std::size_t from_bytes = checked_bytes("cast", from_type, count);
  checked_bytes("cast", to_type, count);
  require_real(from_type);
  require_real(to_type);
  if (count == 0) return;
  if (to_type == from_type) {
    std::memmove(to, from, from_bytes);
    return;
  }
  const auto* input = static_cast<const std::byte*>(from);
  auto* output = static_cast<std::byte*>(to);
  const auto total = static_cast<std::size_t>(count);
  if (to_type == DType::float32) return widen(from_type, input, output, total, to_type);
  if (from_type == DType::float32) return narrow(to_type, input, output, total);
  alignas(64) std::byte block[block_count * sizeof(float)];
  for (std::size_t i = 0; i < total; i += block_count) {
    const std::size_t part = std::min(block_count, total - i);
    widen(from_type, input + i * size_of(from_type), block, part, to_type);
    narrow(to_type, block, output + i * size_of(to_type), part);
  }
}

}  // namespace tutti::kernel
#endif
