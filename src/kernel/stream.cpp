// stream.cpp: copies with non-temporal stores.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/stream.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first: it includes this file again for every instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "kernel/stream.hpp"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernel {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void stream(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t step = hn::Lanes(d);
  // Whole lines only: a line written in parts goes to memory twice.
  constexpr std::size_t line = 64;
  const std::size_t head = std::min((line - reinterpret_cast<std::uintptr_t>(to) % line) % line, bytes);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; bytes - at >= line; at += line) {
    for (std::size_t part = 0; part < line; part += step) hn::Stream(hn::LoadU(d, from + at + part), d, to + at + part);
  }
  hwy::FlushStream();
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace tutti::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernel {
namespace {

HWY_EXPORT(stream);

}  // namespace

std::int64_t shared_cache_bytes() {
  std::int64_t kib = 0;  // "32768K"
  std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> kib;
  return kib > 0 ? kib << 10 : 32 << 20;
}

void copy_streaming(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  HWY_DYNAMIC_DISPATCH(stream)(static_cast<std::uint8_t*>(to), static_cast<const std::uint8_t*>(from), bytes);
}

}  // namespace tutti::kernel
#endif
