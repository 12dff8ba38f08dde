// strided.cpp: elements from one strided layout on the GPU to another.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/strided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <tutti/error.hpp>

#include "cuda/ready.hpp"

namespace tutti::cuda {
namespace {

constexpr int block = 256;

struct Axis {
  std::int64_t extent, to_stride, from_stride;  // strides in bytes
};

/// Adjacent axes that are one axis on both sides become one; those of length 1 vanish.
std::vector<Axis> coalesced(const View& to, const View& from) {
  const auto bytes = static_cast<std::int64_t>(size_of(to.dtype()));
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < to.shape().size(); ++i) {
    const Axis next{to.shape()[i], to.strides()[i] * bytes, from.strides()[i] * bytes};
    if (next.extent == 1) continue;
    if (!axes.empty() && axes.back().to_stride == next.extent * next.to_stride &&
        axes.back().from_stride == next.extent * next.from_stride) {
      axes.back() = {axes.back().extent * next.extent, next.to_stride, next.from_stride};
    } else {
      axes.push_back(next);
    }
  }
  return axes;
}

bool divides(std::int64_t unit, const StridedMove& move) {
  const auto is_multiple = [&](std::int64_t value) { return value % unit == 0; };
  return is_multiple(reinterpret_cast<std::intptr_t>(move.to)) &&
         is_multiple(reinterpret_cast<std::intptr_t>(move.from)) &&
         std::all_of(move.to_stride, move.to_stride + move.axes, is_multiple) &&
         std::all_of(move.from_stride, move.from_stride + move.axes, is_multiple);
}

}  // namespace

StridedMove plan_move(const View& to, const View& from) {
  StridedMove move;
  move.to = static_cast<std::byte*>(to.data());
  move.from = static_cast<const std::byte*>(from.data());
  const auto bytes = static_cast<std::int64_t>(size_of(to.dtype()));
  std::vector<Axis> axes = coalesced(to, from);
  // The innermost run counts as one long element, of which a unit is a part.
  std::int64_t run = bytes;
  if (!axes.empty() && axes.back().to_stride == bytes && axes.back().from_stride == bytes) {
    run = axes.back().extent * bytes;
    axes.pop_back();
  }
  move.axes = static_cast<int>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    move.extent[i] = axes[i].extent;
    move.to_stride[i] = axes[i].to_stride;
    move.from_stride[i] = axes[i].from_stride;
  }
  move.unit = 16;
  while (run % move.unit != 0 || !divides(move.unit, move)) move.unit /= 2;
  if (run > move.unit) {
    const auto last = static_cast<std::size_t>(move.axes++);
    move.extent[last] = run / move.unit;
    move.to_stride[last] = move.from_stride[last] = move.unit;
  }
  move.count = to.count() * bytes / move.unit;
  return move;
}

void copy_view(Device& device, Stream stream, const View& to, const View& from) {
  if (to.count() == 0) return;
  if (to.is_contiguous() && from.is_contiguous()) {
    return check(driver().copy(reinterpret_cast<Address>(to.data()), reinterpret_cast<Address>(from.data()),
                               static_cast<std::size_t>(to.bytes()), stream),
                 "cuMemcpyAsync");
  }
  Function const kernel = device.kernel("tutti_move_strided");
  if (kernel == nullptr) {
    throw Unsupported(
        fmt::format("an array on the GPU that is not contiguous cannot be packed: {}; pass x.contiguous()",
                    device.kernel_problem()));
  }
  StridedMove move = plan_move(to, from);
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::int64_t>((move.count + block - 1) / block, 1, std::int64_t{8} * device.multiprocessors()));
  void* arguments[] = {&move};
  check(driver().launch(kernel, blocks, 1, 1, block, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
}

void copy_now(const View& to, const View& from) {
  if (!(to.device() == from.device())) throw InvalidArgument("the two arrays are on different devices");
  Device& device = Device::get(from.device().index);
  const Device::Current current(device);
  Stream const stream = device.take_stream();
  Event const event = device.take_event();
  wait_until_ready(device, from.data(), stream);
  wait_until_ready(device, to.data(), stream);
  copy_view(device, stream, to, from);
  check(driver().record(event, stream), "cuEventRecord");
  check(driver().synchronize(event), "cuEventSynchronize");
  device.give_back(event);
  device.give_back_stream(stream);
}

}  // namespace tutti::cuda
