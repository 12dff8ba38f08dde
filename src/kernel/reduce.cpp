// reduce.cpp: element-wise reductions of any number of inputs.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/reduce.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/highway.h>

#include <array>
#include <type_traits>

#include "kernel/arguments.hpp"
#include "kernel/kernel.hpp"
#include "kernel/lanes-inl.hpp"

#ifndef TUTTI_KERNEL_REDUCTION
#define TUTTI_KERNEL_REDUCTION
namespace tutti::kernel {
namespace {

struct Reduction {
  Op::Kind op;
  DType dtype;
  std::byte* to;
  std::span<const void* const> inputs;  // at least one
  std::size_t bytes;                    // of each of them
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

struct Sum {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Mul(a, b);
  }
};

struct ComplexProduct {
  // The plain formula, not fused: the same bits with either operand first and on every instruction set.
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return {hn::Sub(hn::Mul(a.real, b.real), hn::Mul(a.imaginary, b.imaginary)),
            hn::Add(hn::Mul(a.real, b.imaginary), hn::Mul(a.imaginary, b.real))};
  }
};

// NaN if either is NaN. Equal values differ at most in the sign of zero, which `equal` settles, so that the order of
// operands does not matter.
template <class V, class M>
HWY_INLINE V ordered(V a, V b, M a_wins, V equal) {
  const V chosen = hn::IfThenElse(hn::Eq(a, b), equal, hn::IfThenElse(a_wins, a, b));
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), chosen);
}

struct Min {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    if constexpr (std::is_floating_point_v<hn::LaneType<V>>) {
      return ordered(a, b, hn::Lt(a, b), hn::Or(a, b));
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    if constexpr (std::is_floating_point_v<hn::LaneType<V>>) {
      return ordered(a, b, hn::Lt(b, a), hn::And(a, b));
    } else {
      return hn::Max(a, b);
    }
  }
};

struct And {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::And(a, b);
  }
};

struct Or {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Or(a, b);
  }
};

struct Xor {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Xor(a, b);
  }
};

// One result: the inputs' elements at byte `at`, combined in order.
template <class Lanes, class Combine>
HWY_INLINE typename Lanes::V reduced_at(const Reduction& r, std::size_t at) {
  auto result = Lanes::load(static_cast<const std::byte*>(r.inputs[0]) + at);
  for (const void* input : r.inputs.subspan(1)) {
    result = Combine::combine(result, Lanes::load(static_cast<const std::byte*>(input) + at));
  }
  return result;
}

// Several steps at once: independent operations hide their latency, and the list of inputs is looked at less often.
template <class Lanes, class Combine>
HWY_INLINE void reduce_block(const Reduction& r, std::size_t at, std::size_t step_bytes) {
  const auto* first = static_cast<const std::byte*>(r.inputs[0]) + at;
  auto v0 = Lanes::load(first);
  auto v1 = Lanes::load(first + step_bytes);
  auto v2 = Lanes::load(first + 2 * step_bytes);
  auto v3 = Lanes::load(first + 3 * step_bytes);
  for (const void* input : r.inputs.subspan(1)) {
    const auto* next = static_cast<const std::byte*>(input) + at;
    v0 = Combine::combine(v0, Lanes::load(next));
    v1 = Combine::combine(v1, Lanes::load(next + step_bytes));
    v2 = Combine::combine(v2, Lanes::load(next + 2 * step_bytes));
    v3 = Combine::combine(v3, Lanes::load(next + 3 * step_bytes));
  }
  Lanes::store(v0, r.to + at);
  Lanes::store(v1, r.to + at + step_bytes);
  Lanes::store(v2, r.to + at + 2 * step_bytes);
  Lanes::store(v3, r.to + at + 3 * step_bytes);
}

template <class Lanes, class Combine>
void reduce_all(const Reduction& r) {
  const std::size_t step_bytes = Lanes::step() * Lanes::bytes;
  if (r.bytes < step_bytes) {
    using One = typename Lanes::One;
    for (std::size_t at = 0; at < r.bytes; at += One::bytes) One::store(reduced_at<One, Combine>(r, at), r.to + at);
    return;
  }
  // The last step may overlap the one before it. Its result is taken before anything is written, because `to` may be one
  // of the inputs.
  const std::size_t last = r.bytes - step_bytes;
  const auto last_result = reduced_at<Lanes, Combine>(r, last);
  std::size_t at = 0;
  for (; r.bytes - at >= 4 * step_bytes; at += 4 * step_bytes) reduce_block<Lanes, Combine>(r, at, step_bytes);
  for (; at < last; at += step_bytes) Lanes::store(reduced_at<Lanes, Combine>(r, at), r.to + at);
  Lanes::store(last_result, r.to + last);
}

template <class Lanes>
void reduce_floats(const Reduction& r) {
  switch (r.op) {
    case Op::Kind::product: return reduce_all<Lanes, Product>(r);
    case Op::Kind::min: return reduce_all<Lanes, Min>(r);
    case Op::Kind::max: return reduce_all<Lanes, Max>(r);
    default: return reduce_all<Lanes, Sum>(r);
  }
}

// Only order asks for the sign: everything else is the same for signed and unsigned integers.
template <class T>
void reduce_integers(const Reduction& r) {
  using Unsigned = Plain<std::make_unsigned_t<T>>;
  switch (r.op) {
    case Op::Kind::product: {
      using Factors = std::conditional_t<sizeof(T) == 1, WideByte<>, Unsigned>;
      return reduce_all<Factors, Product>(r);
    }
    case Op::Kind::min: return reduce_all<Plain<T>, Min>(r);
    case Op::Kind::max: return reduce_all<Plain<T>, Max>(r);
    case Op::Kind::band: return reduce_all<Plain<std::uint8_t>, And>(r);
    case Op::Kind::bor: return reduce_all<Plain<std::uint8_t>, Or>(r);
    case Op::Kind::bxor: return reduce_all<Plain<std::uint8_t>, Xor>(r);
    default: return reduce_all<Unsigned, Sum>(r);
  }
}

void reduce_truth(const Reduction& r) {
  switch (r.op) {
    case Op::Kind::product:
    case Op::Kind::min:
    case Op::Kind::band: return reduce_all<Truth<>, And>(r);
    case Op::Kind::bxor: return reduce_all<Truth<>, Xor>(r);
    default: return reduce_all<Truth<>, Or>(r);
  }
}

template <class T>
void reduce_complex(const Reduction& r) {
  return r.op == Op::Kind::product ? reduce_all<Complex<T>, ComplexProduct>(r) : reduce_all<Plain<T>, Sum>(r);
}

void reduce_dispatched(const Reduction& r) {
  switch (r.dtype) {
    case DType::boolean: return reduce_truth(r);
    case DType::int8: return reduce_integers<std::int8_t>(r);
    case DType::int16: return reduce_integers<std::int16_t>(r);
    case DType::int32: return reduce_integers<std::int32_t>(r);
    case DType::int64: return reduce_integers<std::int64_t>(r);
    case DType::uint8: return reduce_integers<std::uint8_t>(r);
    case DType::uint16: return reduce_integers<std::uint16_t>(r);
    case DType::uint32: return reduce_integers<std::uint32_t>(r);
    case DType::uint64: return reduce_integers<std::uint64_t>(r);
    case DType::float16: return reduce_floats<Small<half::Float16>>(r);
    case DType::bfloat16: return reduce_floats<Small<half::BFloat16>>(r);
    case DType::float32: return reduce_floats<Plain<float>>(r);
    case DType::float64: return reduce_floats<Plain<double>>(r);
    case DType::complex64: return reduce_complex<float>(r);
    case DType::complex128: return reduce_complex<double>(r);
    case DType::float8_e4m3: return reduce_floats<Small<half::Float8E4M3>>(r);
    case DType::float8_e5m2: return reduce_floats<Small<half::Float8E5M2>>(r);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {
namespace {

HWY_EXPORT(reduce_dispatched);

}  // namespace

void reduce_many(const Op& op, DType dtype, void* to, std::span<const void* const> inputs, std::int64_t count) {
  const std::size_t bytes = checked_bytes("reduce", dtype, count);
  require_applies("reduce", op, dtype);
  if (inputs.empty()) throw InvalidArgument("cannot reduce without inputs: at least one is needed");
  if (bytes == 0) return;
  if (op.kind() == Op::Kind::own) {
    const Op::Own& own = op.own();
    if (own.loop == nullptr) throw InvalidArgument("cannot reduce by a function of the program's own without its loop");
    return own.loop(own.state.data(), to, inputs.data(), inputs.size(), static_cast<std::size_t>(count));
  }
  HWY_DYNAMIC_DISPATCH(reduce_dispatched)
  ({.op = op.kind(), .dtype = dtype, .to = static_cast<std::byte*>(to), .inputs = inputs, .bytes = bytes});
}

void reduce(const Op& op, DType dtype, void* to, const void* a, const void* b, std::int64_t count) {
  const std::array<const void*, 2> inputs = {a, b};
  reduce_many(op, dtype, to, inputs, count);
}

}  // namespace tutti::kernel
#endif
