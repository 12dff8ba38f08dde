// scale.cpp: elements times or divided by one number, for premul and mean.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/scale.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/highway.h>

#include "kernel/arguments.hpp"
#include "kernel/kernel.hpp"
#include "kernel/lanes-inl.hpp"

#ifndef TUTTI_KERNEL_SCALING
#define TUTTI_KERNEL_SCALING
namespace tutti::kernel {
namespace {

struct Scaling {
  enum class Kind { multiply, divide } kind;
  DType dtype;
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
  double number;
};

}  // namespace
}  // namespace tutti::kernel
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::kernel {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace ::tutti::kernel::HWY_NAMESPACE;  // lanes

struct Multiply {
  template <class V>
  static HWY_INLINE V apply(V v, V number) {
    return hn::Mul(v, number);
  }
};

struct Divide {
  template <class V>
  static HWY_INLINE V apply(V v, V number) {
    return hn::Div(v, number);
  }
};

template <class Lanes, class Apply>
HWY_INLINE typename Lanes::V scaled_at(const Scaling& s, std::size_t at) {
  const typename Lanes::D d;
  return Apply::apply(Lanes::load(s.from + at), hn::Set(d, static_cast<hn::TFromD<typename Lanes::D>>(s.number)));
}

template <class Lanes, class Apply>
void scale_all(const Scaling& s) {
  const std::size_t step_bytes = Lanes::step() * Lanes::bytes;
  if (s.bytes < step_bytes) {
    using One = typename Lanes::One;
    for (std::size_t at = 0; at < s.bytes; at += One::bytes) One::store(scaled_at<One, Apply>(s, at), s.to + at);
    return;
  }
  // As in reduce: the last step overlaps, so its result is taken before anything is written.
  const std::size_t last = s.bytes - step_bytes;
  const auto last_result = scaled_at<Lanes, Apply>(s, last);
  for (std::size_t at = 0; at < last; at += step_bytes) Lanes::store(scaled_at<Lanes, Apply>(s, at), s.to + at);
  Lanes::store(last_result, s.to + last);
}

template <class Lanes>
void scale_either(const Scaling& s) {
  return s.kind == Scaling::Kind::multiply ? scale_all<Lanes, Multiply>(s) : scale_all<Lanes, Divide>(s);
}

void scale_dispatched(const Scaling& s) {
  switch (s.dtype) {
    case DType::float16: return scale_either<Small<half::Float16>>(s);
    case DType::bfloat16: return scale_either<Small<half::BFloat16>>(s);
    case DType::float8_e4m3: return scale_either<Small<half::Float8E4M3>>(s);
    case DType::float8_e5m2: return scale_either<Small<half::Float8E5M2>>(s);
    case DType::float32:
    case DType::complex64: return scale_either<Plain<float>>(s);
    default: return scale_either<Plain<double>>(s);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {
namespace {

HWY_EXPORT(scale_dispatched);

void run(const Scaling& scaling) {
  if (!is_floating(scaling.dtype) && !is_complex(scaling.dtype)) {
    throw InvalidArgument(
        fmt::format("cannot scale {}: only floating-point and complex elements can be multiplied or "
                    "divided by a number; cast them first",
                    name_of(scaling.dtype)));
  }
  if (scaling.bytes > 0) HWY_DYNAMIC_DISPATCH(scale_dispatched)(scaling);
}

}  // namespace

void scale(DType dtype, void* to, const void* from, double factor, std::int64_t count) {
  run({.kind = Scaling::Kind::multiply,
       .dtype = dtype,
       .to = static_cast<std::byte*>(to),
       .from = static_cast<const std::byte*>(from),
       .bytes = checked_bytes("scale", dtype, count),
       .number = factor});
}

void divide(DType dtype, void* to, const void* from, double divisor, std::int64_t count) {
  run({.kind = Scaling::Kind::divide,
       .dtype = dtype,
       .to = static_cast<std::byte*>(to),
       .from = static_cast<const std::byte*>(from),
       .bytes = checked_bytes("divide", dtype, count),
       .number = divisor});
}

}  // namespace tutti::kernel
#endif
