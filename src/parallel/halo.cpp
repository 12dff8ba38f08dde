// halo.cpp: the margins of an array that is split over a grid of ranks.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/halo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti::parallel {
namespace {

/// The tags of neighbour collectives follow those of halos, of which no mesh has so many.
constexpr std::size_t axis_of_parts = 1 << 16;

[[noreturn]] void refuse(const std::string& why) { throw InvalidArgument("exchange: " + why); }

}  // namespace

std::vector<HaloAxis> halo_axes(const View& array, std::size_t mesh_axes, const HaloOptions& options) {
  if (!array.present() || array.is_read_only()) refuse("the array cannot be written to; pass a writable one");
  if (options.halo.size() != 1 && options.halo.size() != mesh_axes)
    refuse(fmt::format("{} widths were given for {} axes of the mesh; give one, or one for each", options.halo.size(),
                       mesh_axes));
  if (!options.axes.empty() && options.axes.size() != mesh_axes)
    refuse(fmt::format("{} axes of the array were given for {} axes of the mesh", options.axes.size(), mesh_axes));
  std::vector<HaloAxis> found;
  for (std::size_t i = 0; i < mesh_axes; ++i) {
    const int given = options.axes.empty() ? static_cast<int>(i) : options.axes[i];
    const int axis = given < 0 ? given + array.axes() : given;
    const std::int64_t halo = options.halo[options.halo.size() == 1 ? 0 : i];
    if (axis < 0 || axis >= array.axes())
      refuse(fmt::format("axis {} does not exist in an array of {} axes, which needs one for each of the mesh's {}",
                         given, array.axes(), mesh_axes));
    if (std::ranges::find(found, axis, &HaloAxis::axis) != found.end())
      refuse(fmt::format("axis {} of the array is given twice", given));
    const std::int64_t length = array.shape()[static_cast<std::size_t>(axis)];
    if (halo < 0 || length < 3 * halo)
      refuse(
          fmt::format("axis {} of length {} has no room for margins of width {} on both sides of at least as many "
                      "cells of its own",
                      given, length, halo));
    found.push_back({.axis = axis, .halo = halo});
  }
  return found;
}

std::uint32_t halo_tag(std::size_t mesh_axis, bool goes_up) {
  return tag_max + 1 + 2 * static_cast<std::uint32_t>(mesh_axis) + (goes_up ? 1 : 0);
}

Slabs slabs_of(const View& array, const HaloAxis& axis, std::size_t mesh_axis, std::array<int, 2> neighbours) {
  const std::int64_t halo = axis.halo, length = array.shape()[static_cast<std::size_t>(axis.axis)];
  const auto cells = [&](std::int64_t begin) { return array.slice(axis.axis, begin, halo); };
  const std::uint32_t down = halo_tag(mesh_axis, false), up = halo_tag(mesh_axis, true);
  const auto [lower, upper] = neighbours;
  return {.sent = {{{.part = cells(halo), .peer = lower, .tag = down},
                    {.part = cells(length - 2 * halo), .peer = upper, .tag = up}}},
          .filled = {{{.part = cells(0), .peer = lower, .tag = up},
                      {.part = cells(length - halo), .peer = upper, .tag = down}}}};
}

void check_parts(const NeighbourParts& parts) {
  const auto refuse_parts = [&](const std::string& why) {
    throw InvalidArgument(fmt::format("{}: {}", parts.verb, why));
  };
  const auto count = static_cast<std::int64_t>(2 * parts.mesh_axes);
  const auto length = [](const View& array) { return array.axes() == 0 ? 0 : array.shape()[0]; };
  if (!parts.data.present() || !parts.out.present() || parts.out.is_read_only())
    refuse_parts("an array to send and one to write to are needed");
  if (parts.data.dtype() != parts.out.dtype())
    refuse_parts(
        fmt::format("the result is {}, and what is sent {}", name_of(parts.out.dtype()), name_of(parts.data.dtype())));
  if (parts.out.axes() == 0 || length(parts.out) % count != 0)
    refuse_parts(fmt::format("axis 0 of the result has length {}; it holds a part for each of {} neighbours",
                             length(parts.out), count));
  if (!parts.sends_all && (parts.data.axes() == 0 || length(parts.data) % count != 0))
    refuse_parts(
        fmt::format("axis 0 has length {}; it holds a part for each of {} neighbours", length(parts.data), count));
  const std::int64_t expected = parts.data.count() * (parts.sends_all ? count : 1);
  if (parts.out.count() != expected)
    refuse_parts(fmt::format("the result has {} elements; {} are needed", parts.out.count(), expected));
}

Slabs slabs_of(const NeighbourParts& parts, std::size_t mesh_axis, std::array<int, 2> neighbours) {
  const auto part = [&](const View& array, std::size_t side) {
    const std::int64_t length = array.shape()[0] / static_cast<std::int64_t>(2 * parts.mesh_axes);
    return array.slice(0, static_cast<std::int64_t>(2 * mesh_axis + side) * length, length);
  };
  Slabs slabs;
  for (std::size_t side = 0; side < 2; ++side) {
    const bool is_upper = side == 1;
    slabs.sent[side] = {.part = parts.sends_all ? parts.data : part(parts.data, side),
                        .peer = neighbours[side],
                        .tag = halo_tag(axis_of_parts + mesh_axis, is_upper)};
    slabs.filled[side] = {
        .part = part(parts.out, side), .peer = neighbours[side], .tag = halo_tag(axis_of_parts + mesh_axis, !is_upper)};
  }
  return slabs;
}

Slabs numbered(Slabs slabs, std::uint8_t number) {
  for (Slab& slab : slabs.sent) slab.number = number;
  for (Slab& slab : slabs.filled) slab.number = number;
  return slabs;
}

MessageTerms message_of(Verb verb, const Slab& slab, Duration timeout) {
  return {.verb = verb,
          .data = slab.part,
          .peer = slab.peer,
          .tag = slab.tag,
          .timeout = timeout,
          .is_exact = true,
          .is_internal = true,
          .kind = slab.number};
}

void exchange_slabs(GroupCore& core, std::span<const Slabs> all, Duration timeout) {
  std::vector<Work> works;
  const auto start = [&](Verb verb, const Slab& slab) {
    if (slab.peer == nobody) return;
    auto operation = core.start_message(nullptr, message_of(verb, slab, timeout));
    if (operation) works.emplace_back(std::move(operation));
  };
  for (const Slabs& slabs : all) {
    for (const Slab& slab : slabs.filled) start(Verb::recv, slab);
  }
  for (const Slabs& slabs : all) {
    for (const Slab& slab : slabs.sent) start(Verb::send, slab);
  }
  for (Work& work : works) work.wait();
}

}  // namespace tutti::parallel
