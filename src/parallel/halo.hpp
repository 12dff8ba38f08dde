// halo.hpp: the margins of an array that is split over a grid of ranks, and the messages that fill them.
// SPDX-License-Identifier: Apache-2.0
//
// Along an axis of length L with margins of width h, the cells from h to L − h are a rank's own. The first h of them go to the lower
// neighbour's upper margin, the last h to the upper neighbour's lower margin.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tutti/mesh.hpp>

namespace tutti {
struct MessageTerms;
}

namespace tutti::parallel {

struct HaloAxis {
  int axis = 0;  // of the array
  std::int64_t halo = 0;
};

/// What the options mean for this array, one for each axis of the mesh. InvalidArgument if the array is too small, or they do not fit.
std::vector<HaloAxis> halo_axes(const View& array, std::size_t mesh_axes, const HaloOptions& options);

/// A part of the array that is sent, or filled.
struct Slab {
  View part;
  int peer = nobody;
  std::uint32_t tag = 0;
  std::uint8_t number = 0;  // of the exchange; 0: it has none
};
/// As a message of the library's own.
MessageTerms message_of(Verb verb, const Slab& slab, Duration timeout);
struct Slabs {
  std::array<Slab, 2> sent, filled;
};

/// As parts of the exchange with this number: another one's do not fill them.
Slabs numbered(Slabs slabs, std::uint8_t number);

/// Along one axis of the mesh; the neighbours are the lower and the upper one.
Slabs slabs_of(const View& array, const HaloAxis& axis, std::size_t mesh_axis, std::array<int, 2> neighbours);
/// What a neighbour collective sends and receives along one axis of the mesh. Parts of axis 0, two for each axis of the mesh; `sends_all`: the
/// whole of `data` goes to each neighbour. InvalidArgument, with the verb's name, if the arrays do not divide or do not fit to each other.
struct NeighbourParts {
  std::string_view verb;
  View data, out;
  std::size_t mesh_axes = 0;
  bool sends_all = false;
};
void check_parts(const NeighbourParts& parts);
Slabs slabs_of(const NeighbourParts& parts, std::size_t mesh_axis, std::array<int, 2> neighbours);
/// Sends and receives them, and waits.
void exchange_slabs(GroupCore& core, std::span<const Slabs> slabs, Duration timeout);

/// The tag of what goes up or down along an axis of the mesh: one of the library's own.
std::uint32_t halo_tag(std::size_t mesh_axis, bool goes_up);

}  // namespace tutti::parallel
