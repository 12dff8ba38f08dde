// optimise.cpp: AdamW and SGD over flat arrays, and the square of a norm.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/optimise.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernel/arguments.hpp"
#include "kernel/lanes-inl.hpp"
#include "kernel/optimise.hpp"

#ifndef TUTTI_KERNEL_OPTIMISE
#define TUTTI_KERNEL_OPTIMISE
namespace tutti::kernel {
namespace {

struct AdamWJob {
  DType dtype;
  AdamWArrays arrays;
  AdamW rule;
  double step_size, root_correction;  // what the number of the step comes to
  std::size_t bytes;
};

struct SgdJob {
  DType dtype;
  SgdArrays arrays;
  Sgd rule;
  std::size_t bytes;
};

struct SquareJob {
  DType dtype;
  const std::byte* from;
  std::size_t bytes;
  double* result;
};

// Sums of this many lanes are kept apart whatever the register's width, so that the order of addition is always the same.
constexpr std::size_t square_lanes = 16;

}  // namespace
}  // namespace tutti::kernel
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::kernel {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace ::tutti::kernel::HWY_NAMESPACE;  // lanes

inline std::byte* at_of(void* base, std::size_t at) { return static_cast<std::byte*>(base) + at; }
inline const std::byte* at_of(const void* base, std::size_t at) { return static_cast<const std::byte*>(base) + at; }

// Elements go through one by one once less than a register is left: unlike in reduce, a step must not see an element twice.
template <class Lanes, template <class> class Step, class Update>
void step_all(const Update& update) {
  const Step<Lanes> wide(update);
  const std::size_t wide_bytes = Lanes::step() * Lanes::bytes;
  std::size_t at = 0;
  for (; at + wide_bytes <= update.bytes; at += wide_bytes) wide.apply(at);
  using One = typename Lanes::One;
  const Step<One> narrow(update);
  for (; at < update.bytes; at += One::bytes) narrow.apply(at);
}

template <class Lanes>
class AdamWStep {
 public:
  explicit AdamWStep(const AdamWJob& update) : update_(update) {}

  HWY_INLINE void apply(std::size_t at) const {
    const AdamWArrays& a = update_.arrays;
    const AdamW& rule = update_.rule;
    const V gradient = hn::Mul(Lanes::load(at_of(a.gradient, at)), number(rule.gradient_scale));
    V mean = Lanes::load(at_of(a.mean, at));
    mean = hn::Add(mean, hn::Mul(hn::Sub(gradient, mean), number(1 - rule.beta1)));
    V square = hn::Mul(Lanes::load(at_of(a.square, at)), number(rule.beta2));
    square = hn::Add(square, hn::Mul(hn::Mul(gradient, gradient), number(1 - rule.beta2)));
    V parameter = hn::Mul(Lanes::load(at_of(a.parameter, at)), number(1 - rule.learning_rate * rule.weight_decay));
    const V root = hn::Add(hn::Div(hn::Sqrt(square), number(update_.root_correction)), number(rule.epsilon));
    parameter = hn::Sub(parameter, hn::Mul(number(update_.step_size), hn::Div(mean, root)));
    Lanes::store(mean, at_of(a.mean, at));
    Lanes::store(square, at_of(a.square, at));
    Lanes::store(parameter, at_of(a.parameter, at));
  }

 private:
  using V = typename Lanes::V;
  static HWY_INLINE V number(double value) {
    const typename Lanes::D d;
    return hn::Set(d, static_cast<hn::TFromD<typename Lanes::D>>(value));
  }
  const AdamWJob& update_;
};

template <class Lanes>
class SgdStep {
 public:
  explicit SgdStep(const SgdJob& update) : update_(update) {}

  HWY_INLINE void apply(std::size_t at) const {
    const SgdArrays& a = update_.arrays;
    const Sgd& rule = update_.rule;
    const V parameter = Lanes::load(at_of(static_cast<const void*>(a.parameter), at));
    V gradient = hn::Mul(Lanes::load(at_of(a.gradient, at)), number(rule.gradient_scale));
    if (rule.weight_decay != 0) gradient = hn::Add(gradient, hn::Mul(parameter, number(rule.weight_decay)));
    V direction = gradient;
    if (rule.momentum != 0) {
      V velocity = gradient;
      if (!rule.is_first) {
        velocity = hn::Add(hn::Mul(Lanes::load(at_of(a.velocity, at)), number(rule.momentum)),
                           hn::Mul(gradient, number(1 - rule.dampening)));
      }
      Lanes::store(velocity, at_of(a.velocity, at));
      direction = rule.nesterov ? hn::Add(gradient, hn::Mul(velocity, number(rule.momentum))) : velocity;
    }
    Lanes::store(hn::Sub(parameter, hn::Mul(direction, number(rule.learning_rate))), at_of(a.parameter, at));
  }

 private:
  using V = typename Lanes::V;
  static HWY_INLINE V number(double value) {
    const typename Lanes::D d;
    return hn::Set(d, static_cast<hn::TFromD<typename Lanes::D>>(value));
  }
  const SgdJob& update_;
};

void adamw_dispatched(const AdamWJob& update) {
  return update.dtype == DType::float32 ? step_all<Plain<float>, AdamWStep>(update)
                                        : step_all<Plain<double>, AdamWStep>(update);
}

void sgd_dispatched(const SgdJob& update) {
  return update.dtype == DType::float32 ? step_all<Plain<float>, SgdStep>(update)
                                        : step_all<Plain<double>, SgdStep>(update);
}

// Element i goes to sum i mod square_lanes: the compiler turns the inner loop into vectors of whatever width there is.
template <class T>
void add_squares(const SquareJob& update) {
  double sums[square_lanes] = {};
  const std::size_t count = update.bytes / sizeof(T);
  for (std::size_t begin = 0; begin < count; begin += square_lanes) {
    T block[square_lanes] = {};
    const std::size_t length = std::min(square_lanes, count - begin);
    std::memcpy(block, update.from + begin * sizeof(T), length * sizeof(T));
    for (std::size_t i = 0; i < square_lanes; ++i) sums[i] += double(block[i]) * double(block[i]);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  *update.result = total;
}

void squares_dispatched(const SquareJob& update) {
  return update.dtype == DType::float32 ? add_squares<float>(update) : add_squares<double>(update);
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {
namespace {

HWY_EXPORT(adamw_dispatched);
HWY_EXPORT(sgd_dispatched);
HWY_EXPORT(squares_dispatched);

std::size_t bytes_of_update(std::string_view what, DType dtype, std::int64_t count) {
  const std::size_t bytes = checked_bytes(what, dtype, count);
  if (dtype == DType::float32 || dtype == DType::float64) return bytes;
  throw InvalidArgument(fmt::format("cannot {} on {}: only float32 and float64 are stepped; keep a float32 master copy",
                                    what, name_of(dtype)));
}

}  // namespace

void adamw_step(DType dtype, const AdamWArrays& arrays, const AdamW& rule, std::int64_t count) {
  const std::size_t bytes = bytes_of_update("step AdamW", dtype, count);
  if (rule.step < 1) throw InvalidArgument(fmt::format("cannot step AdamW: steps count from 1, not {}", rule.step));
  const auto step = static_cast<double>(rule.step);
  const AdamWJob update{.dtype = dtype,
                        .arrays = arrays,
                        .rule = rule,
                        .step_size = rule.learning_rate / (1 - std::pow(rule.beta1, step)),
                        .root_correction = std::sqrt(1 - std::pow(rule.beta2, step)),
                        .bytes = bytes};
  if (bytes > 0) HWY_DYNAMIC_DISPATCH(adamw_dispatched)(update);
}

void sgd_step(DType dtype, const SgdArrays& arrays, const Sgd& rule, std::int64_t count) {
  const std::size_t bytes = bytes_of_update("step SGD", dtype, count);
  if (rule.momentum != 0 && arrays.velocity == nullptr && bytes > 0) {
    throw InvalidArgument("cannot step SGD: momentum needs an array for the velocity");
  }
  if (rule.nesterov && (rule.momentum <= 0 || rule.dampening != 0)) {
    throw InvalidArgument("cannot step SGD: nesterov needs momentum and no dampening");
  }
  if (bytes > 0) HWY_DYNAMIC_DISPATCH(sgd_dispatched)({.dtype = dtype, .arrays = arrays, .rule = rule, .bytes = bytes});
}

double sum_of_squares(DType dtype, const void* from, std::int64_t count) {
  double result = 0;
  const std::size_t bytes = bytes_of_update("square", dtype, count);
  if (bytes > 0) {
    HWY_DYNAMIC_DISPATCH(squares_dispatched)
    ({.dtype = dtype, .from = static_cast<const std::byte*>(from), .bytes = bytes, .result = &result});
  }
  return result;
}

}  // namespace tutti::kernel
#endif
