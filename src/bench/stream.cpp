// stream.cpp: sums and copies of arrays, with stores that go through the caches or past them.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/stream.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "bench/stream.hpp"

HWY_BEFORE_NAMESPACE();
namespace tutti::bench {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Inputs and Outputs are numbers where they are known when this is compiled, so that the loops over them vanish; else 0.
template <std::size_t Inputs, std::size_t Outputs, bool past_caches>
void run_fixed(const Stream& stream, Stretch stretch) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t inputs = Inputs != 0 ? Inputs : stream.inputs.size();
  const std::size_t outputs = Outputs != 0 ? Outputs : stream.outputs.size();
  const float* const* in = stream.inputs.data();
  float* const* out = stream.outputs.data();
  auto kept = hn::Zero(d);  // of a stream without outputs, so that its loads are not left out
  const auto end = static_cast<std::size_t>(stretch.end);
  auto i = static_cast<std::size_t>(stretch.begin);
  for (; i + lanes <= end; i += lanes) {
    auto sum = hn::Load(d, in[0] + i);
    for (std::size_t k = 1; k < inputs; ++k) sum = hn::Add(sum, hn::Load(d, in[k] + i));
    for (std::size_t k = 0; k < outputs; ++k) {
      if constexpr (past_caches) hn::Stream(sum, d, out[k] + i);
      else hn::Store(sum, d, out[k] + i);
    }
    if (outputs == 0) kept = hn::Max(kept, sum);
  }
  for (; i < end; ++i) {
    float sum = in[0][i];
    for (std::size_t k = 1; k < inputs; ++k) sum += in[k][i];
    for (std::size_t k = 0; k < outputs; ++k) out[k][i] = sum;
  }
  if constexpr (past_caches) hwy::FlushStream();
  volatile float sink = hn::GetLane(hn::MaxOfLanes(d, kept));
  (void)sink;
}

template <bool past_caches>
void run_any(const Stream& stream, Stretch stretch) {
  const std::size_t inputs = stream.inputs.size(), outputs = stream.outputs.size();
  if (inputs == 1 && outputs == 1) return run_fixed<1, 1, past_caches>(stream, stretch);
  if (inputs == 2 && outputs == 1) return run_fixed<2, 1, past_caches>(stream, stretch);
  if (inputs == 2 && outputs == 2) return run_fixed<2, 2, past_caches>(stream, stretch);
  return run_fixed<0, 0, past_caches>(stream, stretch);
}

void run_cached(const Stream& stream, Stretch stretch) { run_any<false>(stream, stretch); }
void run_past_caches(const Stream& stream, Stretch stretch) { run_any<true>(stream, stretch); }

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::bench {

namespace {
HWY_EXPORT(run_cached);
HWY_EXPORT(run_past_caches);
}  // namespace

void run(const Stream& stream, Stretch stretch, Stores stores) {
  if (stores == Stores::cached) HWY_DYNAMIC_DISPATCH(run_cached)(stream, stretch);
  else HWY_DYNAMIC_DISPATCH(run_past_caches)(stream, stretch);
}

}  // namespace tutti::bench
#endif
