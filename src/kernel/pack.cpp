// pack.cpp: elements from one strided layout to another.
// SPDX-License-Identifier: Apache-2.0
//
// Every move is normalised first: axes of length 1 vanish, adjacent axes that are contiguous on both sides become one,
// and strides count bytes. What is left is the innermost axis, which is copied as a run, gathered, or transposed in
// tiles, and an odometer over the axes around it. Cost: bytes read and written once; layouts without runs pay per
// element.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernel/arguments.hpp"
#include "kernel/kernel.hpp"

namespace tutti::kernel {
namespace {

struct Axis {
  std::int64_t extent = 1;
  std::int64_t to_stride = 0;  // bytes
  std::int64_t from_stride = 0;
};

struct Move {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t element = 1;  // bytes; after coalescing, of a whole run
  int axes = 0;
  std::array<Axis, View::max_axes> axis{};  // outermost first
};

using Strides = std::array<std::int64_t, View::max_axes>;

Strides row_major(std::span<const std::int64_t> shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Appends an innermost axis, merging it with the one before where both sides are contiguous.
void append(Move& move, Axis inner) {
  if (inner.extent == 1) return;
  if (move.axes > 0) {
    Axis& outer = move.axis[std::size_t(move.axes - 1)];
    if (outer.to_stride == inner.extent * inner.to_stride && outer.from_stride == inner.extent * inner.from_stride) {
      outer = {outer.extent * inner.extent, inner.to_stride, inner.from_stride};
      return;
    }
  }
  move.axis[std::size_t(move.axes++)] = inner;
}

// An innermost axis without gaps becomes part of the element: from then on, elements are runs.
void absorb_run(Move& move) {
  if (move.axes == 0) return;
  const Axis& inner = move.axis[std::size_t(move.axes - 1)];
  if (inner.to_stride != move.element || inner.from_stride != move.element) return;
  move.element *= inner.extent;
  --move.axes;
}

template <std::int64_t size>
void move_line(std::byte* to, const std::byte* from, const Axis& axis) {
  for (std::int64_t i = 0; i < axis.extent; ++i) {
    std::memcpy(to + i * axis.to_stride, from + i * axis.from_stride, size);
  }
}

void move_runs(std::byte* to, const std::byte* from, const Axis& axis, std::int64_t run) {
  for (std::int64_t i = 0; i < axis.extent; ++i) {
    std::memcpy(to + i * axis.to_stride, from + i * axis.from_stride, static_cast<std::size_t>(run));
  }
}

void move_axis(std::byte* to, const std::byte* from, const Axis& axis, std::int64_t element) {
  switch (element) {
    case 1: return move_line<1>(to, from, axis);
    case 2: return move_line<2>(to, from, axis);
    case 4: return move_line<4>(to, from, axis);
    case 8: return move_line<8>(to, from, axis);
    case 16: return move_line<16>(to, from, axis);
    default: return move_runs(to, from, axis, element);
  }
}

// Two axes in tiles that fit the first cache, so that both sides use the whole of each cache line they touch.
void move_plane(std::byte* to, const std::byte* from, const Axis& outer, const Axis& inner, std::int64_t element) {
  constexpr std::int64_t tile = 32;
  for (std::int64_t i = 0; i < outer.extent; i += tile) {
    const std::int64_t rows = std::min(tile, outer.extent - i);
    for (std::int64_t j = 0; j < inner.extent; j += tile) {
      Axis line = inner;
      line.extent = std::min(tile, inner.extent - j);
      std::byte* tile_to = to + i * outer.to_stride + j * inner.to_stride;
      const std::byte* tile_from = from + i * outer.from_stride + j * inner.from_stride;
      for (std::int64_t row = 0; row < rows; ++row) {
        move_axis(tile_to + row * outer.to_stride, tile_from + row * outer.from_stride, line, element);
      }
    }
  }
}

// Calls body(to, from) for every position of the first `axes` axes.
template <class Body>
void for_each_position(const Move& move, int axes, Body body) {
  std::array<std::int64_t, View::max_axes> index{};
  std::byte* to = move.to;
  const std::byte* from = move.from;
  for (;;) {
    body(to, from);
    int turning = axes - 1;
    for (; turning >= 0; --turning) {
      const Axis& axis = move.axis[std::size_t(turning)];
      to += axis.to_stride;
      from += axis.from_stride;
      if (++index[std::size_t(turning)] < axis.extent) break;
      index[std::size_t(turning)] = 0;
      to -= axis.extent * axis.to_stride;
      from -= axis.extent * axis.from_stride;
    }
    if (turning < 0) return;
  }
}

// The axis to be tiled with the innermost: the one with the smallest step on the side where the innermost jumps.
int tiled_axis(const Move& move) {
  const Axis& inner = move.axis[std::size_t(move.axes - 1)];
  const bool from_jumps = std::abs(inner.from_stride) > std::abs(inner.to_stride);
  int best = -1;
  std::int64_t best_step = std::abs(from_jumps ? inner.from_stride : inner.to_stride);
  for (int i = 0; i < move.axes - 1; ++i) {
    const Axis& axis = move.axis[std::size_t(i)];
    const std::int64_t step = std::abs(from_jumps ? axis.from_stride : axis.to_stride);
    if (step != 0 && step < best_step) {
      best = i;
      best_step = step;
    }
  }
  return best;
}

void run(Move move) {
  absorb_run(move);
  if (move.axes == 0) {
    std::memcpy(move.to, move.from, static_cast<std::size_t>(move.element));
    return;
  }
  const Axis inner = move.axis[std::size_t(move.axes - 1)];
  const int tiled = tiled_axis(move);
  if (tiled < 0) {
    for_each_position(move, move.axes - 1,
                      [&](std::byte* to, const std::byte* from) { move_axis(to, from, inner, move.element); });
    return;
  }
  const Axis outer = std::exchange(move.axis[std::size_t(tiled)], Axis{});  // an axis of length 1: the tiles walk it
  for_each_position(move, move.axes - 1,
                    [&](std::byte* to, const std::byte* from) { move_plane(to, from, outer, inner, move.element); });
}

Move prepare(std::byte* to, std::span<const std::int64_t> to_strides, const std::byte* from,
             std::span<const std::int64_t> from_strides, const View& shaped) {
  Move move{.to = to, .from = from, .element = static_cast<std::int64_t>(size_of(shaped.dtype()))};
  for (std::size_t i = 0; i < shaped.shape().size(); ++i) {
    append(move, {shaped.shape()[i], to_strides[i] * move.element, from_strides[i] * move.element});
  }
  return move;
}

void require_host(const View& view, std::string_view what) {
  if (!view.present()) throw InvalidArgument(fmt::format("cannot {} a view that is not present", what));
  if (view.device().kind != Device::Kind::cpu) {
    throw InvalidArgument(fmt::format("cannot {} a view of cuda:{} with a CPU kernel", what, view.device().index));
  }
}

void require_writable(const View& view) {
  if (view.is_read_only()) throw InvalidArgument("cannot write to a read-only view");
  for (int i = 0; i < view.axes(); ++i) {
    if (view.strides()[std::size_t(i)] == 0 && view.shape()[std::size_t(i)] > 1) {
      throw InvalidArgument(
          fmt::format("cannot write to a view whose axis {} has stride 0: its {} elements are one place "
                      "in memory; copy the array first",
                      i, view.shape()[std::size_t(i)]));
    }
  }
}

}  // namespace

void pack(const View& from, void* to) {
  require_host(from, "pack");
  if (from.count() == 0) return;
  run(prepare(static_cast<std::byte*>(to), row_major(from.shape()), static_cast<const std::byte*>(from.data()),
              from.strides(), from));
}

void unpack(const void* from, const View& to) {
  require_host(to, "unpack to");
  require_writable(to);
  if (to.count() == 0) return;
  run(prepare(static_cast<std::byte*>(to.data()), to.strides(), static_cast<const std::byte*>(from),
              row_major(to.shape()), to));
}

void copy(const View& to, const View& from) {
  require_host(from, "copy from");
  require_host(to, "copy to");
  require_writable(to);
  if (to.dtype() != from.dtype() || !std::ranges::equal(to.shape(), from.shape())) {
    throw InvalidArgument("cannot copy between views of different shape or dtype");
  }
  if (to.count() == 0) return;
  run(prepare(static_cast<std::byte*>(to.data()), to.strides(), static_cast<const std::byte*>(from.data()),
              from.strides(), to));
}

}  // namespace tutti::kernel
