// quantise.cpp: blocks of float32 to signed bytes and a scale, and back.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/quantise.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel/arguments.hpp"
#include "kernel/quantise.hpp"

#ifndef TUTTI_KERNEL_QUANTISE
#define TUTTI_KERNEL_QUANTISE
namespace tutti::kernel {
namespace {

constexpr auto block = static_cast<std::size_t>(quantised_block);
constexpr auto record_bytes = static_cast<std::size_t>(quantised_record_bytes);
constexpr float largest_code = 127;

struct QuantiseJob {
  const float* from;
  float* residual;
  std::byte* records;
  std::size_t count;
};

struct DequantiseJob {
  const std::byte* records;
  float* to;
  std::size_t count;
  bool adds;
};

}  // namespace
}  // namespace tutti::kernel
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::kernel {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;  // a block is a whole number of these on every machine

// NaN if any of them is; the largest magnitude otherwise.
HWY_INLINE float largest_magnitude(const float* values) {
  const D d;
  auto largest = hn::Zero(d);
  auto poison = hn::Zero(d);  // stays 0 unless something is NaN or infinite: 0 × that is NaN
  for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
    const auto v = hn::Load(d, values + i);
    largest = hn::Max(largest, hn::Abs(v));
    poison = hn::Add(poison, hn::Mul(v, hn::Zero(d)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest)) + hn::GetLane(hn::SumOfLanes(d, poison));
}

// `values` become the codes' values.
HWY_INLINE float encode(float* values, std::byte* record) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::int8_t, D> d8;
  const float largest = largest_magnitude(values);
  const float scale = largest / largest_code;
  // The scale of the smallest numbers may be 0 or too small to be divided by: they count as zeros.
  const float inverse = scale >= std::numeric_limits<float>::min() ? 1.0f / scale : 0.0f;
  HWY_ALIGN std::int8_t codes[block];
  for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
    const auto limit = hn::Set(d, largest_code);
    const auto scaled = hn::Mul(hn::Load(d, values + i), hn::Set(d, inverse));
    const auto code = hn::NearestInt(hn::Max(hn::Neg(limit), hn::Min(scaled, limit)));
    hn::Store(hn::DemoteTo(d8, code), d8, codes + i);
    hn::Store(hn::Mul(hn::ConvertTo(d, hn::BitCast(di, code)), hn::Set(d, scale)), d, values + i);
  }
  std::memcpy(record, &scale, sizeof scale);
  std::memcpy(record + sizeof scale, codes, block);
  return scale;
}

void quantise_dispatched(const QuantiseJob& job) {
  const D d;
  HWY_ALIGN float wanted[block];
  HWY_ALIGN float said[block];
  for (std::size_t begin = 0; begin < job.count; begin += block) {
    const std::size_t length = std::min(block, job.count - begin);
    std::fill(std::copy_n(job.from + begin, length, wanted), wanted + block, 0.0f);
    if (job.residual != nullptr) {
      for (std::size_t i = 0; i < length; ++i) wanted[i] += job.residual[begin + i];
    }
    std::copy_n(wanted, block, said);
    const float scale = encode(said, job.records + begin / block * record_bytes);
    if (job.residual == nullptr) continue;
    // Nothing can be made good once a block is NaN or infinite.
    const bool is_lost = !std::isfinite(scale);
    for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
      hn::Store(hn::Sub(hn::Load(d, wanted + i), hn::Load(d, said + i)), d, wanted + i);
    }
    for (std::size_t i = 0; i < length; ++i) job.residual[begin + i] = is_lost ? 0.0f : wanted[i];
  }
}

void dequantise_dispatched(const DequantiseJob& job) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::int8_t, D> d8;
  HWY_ALIGN std::int8_t codes[block];
  HWY_ALIGN float said[block];
  for (std::size_t begin = 0; begin < job.count; begin += block) {
    const std::byte* record = job.records + begin / block * record_bytes;
    float scale = 0;
    std::memcpy(&scale, record, sizeof scale);
    std::memcpy(codes, record + sizeof scale, block);
    for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
      const auto code = hn::ConvertTo(d, hn::PromoteTo(di, hn::Load(d8, codes + i)));
      hn::Store(hn::Mul(code, hn::Set(d, scale)), d, said + i);
    }
    const std::size_t length = std::min(block, job.count - begin);
    float* to = job.to + begin;
    if (job.adds) {
      for (std::size_t i = 0; i < length; ++i) to[i] += said[i];
    } else {
      std::copy_n(said, length, to);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {
namespace {

HWY_EXPORT(quantise_dispatched);
HWY_EXPORT(dequantise_dispatched);

std::size_t count_of_job(std::string_view what, std::int64_t count) {
  return checked_bytes(what, DType::float32, count) / sizeof(float);
}

}  // namespace

void quantise(const float* from, float* residual, void* records, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(quantise_dispatched)
  ({.from = from,
    .residual = residual,
    .records = static_cast<std::byte*>(records),
    .count = count_of_job("quantise", count)});
}

void dequantise(const void* records, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(dequantise_dispatched)
  ({.records = static_cast<const std::byte*>(records),
    .to = to,
    .count = count_of_job("dequantise", count),
    .adds = false});
}

void dequantise_add(const void* records, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(dequantise_dispatched)
  ({.records = static_cast<const std::byte*>(records),
    .to = to,
    .count = count_of_job("dequantise", count),
    .adds = true});
}

}  // namespace tutti::kernel
#endif
