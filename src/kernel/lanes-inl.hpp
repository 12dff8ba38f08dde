// lanes-inl.hpp: how elements of each kind come into vector registers and go back. Compiled once per instruction set.
// SPDX-License-Identifier: Apache-2.0
//
// A "lanes" type has: `bytes`, the size of one element; `step()`, the elements in one register (or pair of them); `V`,
// what a register holds while computing; load and store, at any alignment; `One`, the same for single elements.

// Highway's include guard for code that is compiled once per target.
#if defined(TUTTI_KERNEL_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNEL_LANES_INL_HPP
#undef TUTTI_KERNEL_LANES_INL_HPP
#else
#define TUTTI_KERNEL_LANES_INL_HPP
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most `lanes` of them, by default as many as a register holds.
inline constexpr std::size_t all_lanes = HWY_LANES(std::uint8_t);
template <class T, std::size_t lanes>
using Tag = hn::CappedTag < T,
      lanes<HWY_LANES(T) ? lanes : HWY_LANES(T)>;

template <class D>
HWY_INLINE hn::Vec<D> load_at(D d, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR  // there LoadU dereferences, which wants an aligned pointer
  hn::TFromD<D> value;
  std::memcpy(&value, from, sizeof value);
  return hn::Set(d, value);
#else
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
#endif
}

template <class D>
HWY_INLINE void store_at(D d, hn::Vec<D> v, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> value = hn::GetLane(v);
  std::memcpy(to, &value, sizeof value);
  (void)d;
#else
  hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(to));
#endif
}

// Elements that are computed in their own type.
template <class T, std::size_t lanes = all_lanes>
struct Plain {
  using One = Plain<T, 1>;
  using D = Tag<T, lanes>;
  using V = hn::Vec<D>;
  static constexpr std::size_t bytes = sizeof(T);
  static HWY_INLINE std::size_t step() { return hn::Lanes(D()); }
  static HWY_INLINE V load(const std::byte* from) { return load_at(D(), from); }
  static HWY_INLINE void store(V v, std::byte* to) { store_at(D(), v, to); }
};

// Truth values: 0 or 1 in registers, whatever byte stood for true in memory.
template <std::size_t lanes = all_lanes>
struct Truth : Plain<std::uint8_t, lanes> {
  using One = Truth<1>;
  using D = Tag<std::uint8_t, lanes>;
  static HWY_INLINE hn::Vec<D> load(const std::byte* from) {
    return hn::Min(load_at(D(), from), hn::Set(D(), std::uint8_t{1}));
  }
};

// Bytes in 16-bit lanes, for products: no instruction set multiplies bytes.
template <std::size_t lanes = all_lanes>
struct WideByte {
  using One = WideByte<1>;
  using D = Tag<std::uint16_t, lanes>;
  using Narrow = hn::Rebind<std::uint8_t, D>;
  using V = hn::Vec<D>;
  static constexpr std::size_t bytes = 1;
  static HWY_INLINE std::size_t step() { return hn::Lanes(D()); }
  static HWY_INLINE V load(const std::byte* from) { return hn::PromoteTo(D(), load_at(Narrow(), from)); }
  static HWY_INLINE void store(V v, std::byte* to) { store_at(Narrow(), hn::TruncateTo(Narrow(), v), to); }
};

// Real and imaginary parts in two registers.
template <class T, std::size_t lanes = all_lanes>
struct Complex {
  using One = Complex<T, 1>;
  using D = Tag<T, lanes>;
  struct V {
    hn::Vec<D> real, imaginary;
  };
  static constexpr std::size_t bytes = 2 * sizeof(T);
  static HWY_INLINE std::size_t step() { return hn::Lanes(D()); }
  static HWY_INLINE V load(const std::byte* from) {
    V v;
#if HWY_TARGET == HWY_SCALAR
    v = {load_at(D(), from), load_at(D(), from + sizeof(T))};
#else
    hn::LoadInterleaved2(D(), reinterpret_cast<const T*>(from), v.real, v.imaginary);
#endif
    return v;
  }
  static HWY_INLINE void store(V v, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
    store_at(D(), v.real, to);
    store_at(D(), v.imaginary, to + sizeof(T));
#else
    hn::StoreInterleaved2(v.real, v.imaginary, D(), reinterpret_cast<T*>(to));
#endif
  }
};

// half::decode, for codes that were widened to 32 bits.
template <class F, class D, class VBits>
HWY_INLINE hn::Vec<D> decode_lanes(D df, VBits code) {
  if constexpr (F::same_exponent) return hn::BitCast(df, hn::ShiftLeft<F::dropped>(code));
  const hn::RebindToUnsigned<D> d;
  const hn::RebindToSigned<D> di;
  const VBits magnitude = hn::And(code, hn::Set(d, F::magnitude));
  const VBits sign = hn::ShiftLeft<F::sign_shift>(hn::Xor(code, magnitude));
  const VBits shifted = hn::ShiftLeft<F::dropped>(magnitude);
  VBits result = hn::Add(shifted, hn::Set(d, F::rebias));

  const auto subnormal =
      hn::Mul(hn::ConvertTo(df, hn::BitCast(di, magnitude)), hn::Set(df, std::bit_cast<float>(F::least_subnormal)));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, 1u << F::mantissa));
  result = hn::IfThenElse(is_subnormal, hn::BitCast(d, subnormal), result);

  VBits special = hn::Set(d, half::float_infinity | half::float_quiet_bit);
  if constexpr (F::has_infinity) {
    const VBits quiet = hn::Or(shifted, special);
    special = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, F::overflow)), hn::Set(d, half::float_infinity), quiet);
  }
  const auto is_special = hn::Gt(magnitude, hn::Set(d, F::overflow - 1));
  return hn::BitCast(df, hn::Or(sign, hn::IfThenElse(is_special, special, result)));
}

// half::encode; the code stands in the low bits of each 32-bit lane.
template <class F, class D>
HWY_INLINE auto encode_lanes(D df, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> d;
  using VBits = hn::Vec<decltype(d)>;
  const VBits bits = hn::BitCast(d, value);
  const VBits magnitude = hn::And(bits, hn::Set(d, half::float_magnitude));
  const VBits sign = hn::ShiftRight<F::sign_shift>(hn::Xor(bits, magnitude));
  const VBits odd = hn::And(hn::ShiftRight<F::dropped>(magnitude), hn::Set(d, 1u));
  constexpr std::uint32_t offset = (1u << (F::dropped - 1)) - 1 - F::rebias;  // modulo 2³²
  VBits result = hn::ShiftRight<F::dropped>(hn::Add(hn::Add(magnitude, hn::Set(d, offset)), odd));
  if constexpr (!F::same_exponent) {  // there rounding cannot pass infinity, and subnormals are as in float32
    result = hn::Min(result, hn::Set(d, F::overflow));
    const VBits magic = hn::Set(d, F::subnormal_magic);
    const auto rounded = hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, magic));
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, F::least_normal));
    result = hn::IfThenElse(is_subnormal, hn::Sub(hn::BitCast(d, rounded), magic), result);
  }
  VBits nan = hn::Set(d, F::nan);
  if constexpr (F::keeps_payload) {
    nan = hn::Or(nan, hn::And(hn::ShiftRight<F::dropped>(magnitude), hn::Set(d, F::magnitude)));
  }
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, half::float_infinity)), nan, result);
  return hn::Or(sign, result);
}

// Small floats, in float32 while computing.
template <class F, std::size_t lanes = all_lanes>
struct Small {
  using One = Small<F, 1>;
  using D = Tag<float, lanes>;
  using Narrow = hn::Rebind<typename F::Bits, D>;
  using V = hn::Vec<D>;
  static constexpr std::size_t bytes = sizeof(typename F::Bits);
  static HWY_INLINE std::size_t step() { return hn::Lanes(D()); }
  static HWY_INLINE V load(const std::byte* from) {
    return decode_lanes<F>(D(), hn::PromoteTo(hn::RebindToUnsigned<D>(), load_at(Narrow(), from)));
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    store_at(Narrow(), hn::TruncateTo(Narrow(), encode_lanes<F>(D(), v)), to);
  }
};

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86 && !defined(HWY_DISABLE_F16C)
// The processor's own conversion; Highway's substitute elsewhere knows neither infinity nor NaN.
template <std::size_t lanes>
struct Small<half::Float16, lanes> {
  using One = Small<half::Float16, 1>;
  using D = Tag<float, lanes>;
  using Narrow = hn::Rebind<hwy::float16_t, D>;
  using NarrowBits = hn::Rebind<std::uint16_t, D>;
  using V = hn::Vec<D>;
  static constexpr std::size_t bytes = 2;
  static HWY_INLINE std::size_t step() { return hn::Lanes(D()); }
  static HWY_INLINE V load(const std::byte* from) {
    return hn::PromoteTo(D(), hn::BitCast(Narrow(), load_at(NarrowBits(), from)));
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    store_at(NarrowBits(), hn::BitCast(NarrowBits(), hn::DemoteTo(Narrow(), v)), to);
  }
};
#endif

}  // namespace tutti::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
