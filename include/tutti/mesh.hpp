// mesh.hpp: ranks as a grid with named axes, and a group along each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/group.hpp>

namespace tutti {

struct MeshAxis {
  std::string name;
  int size = 0;           // −1, for one axis at most: as many as are left
  bool periodic = false;  // the last place's neighbour is the first one; otherwise beyond the edges is nobody
};

/// How Mesh::exchange fills the margins of an array.
struct HaloOptions {
  std::vector<int> halo{1};  // the width of the margins: one for all axes of the mesh, or one for each
  std::vector<int>
      axes{};  // of the array, one for each axis of the mesh; negative ones from the end; none: its first ones
  TimeLimit timeout{};
};

/// The order in which ranks fill a grid of these sizes, row by row. The ranks of the last axis are kept on one node as
/// far as possible, then those of the last two axes, and so on; otherwise ranks stay in order. No side effects.
std::vector<int> arrange_mesh(std::span<const int> node_of, std::span<const int> sizes);

/// Every rank of `group` makes the same mesh; the sizes' product is the group's size. The last axis is the one with the
/// closest ranks: tensor parallelism goes there, data parallelism first.
///
///     tutti::Mesh mesh(world, {{"data", 2}, {"tensor", 4}});
///     mesh["tensor"].all_reduce(activations);
class Mesh {
 public:
  Mesh(const Group& group, std::vector<MeshAxis> axes, const CallOptions& options = {});

  /// The ranks that differ from this one along that axis only, in the axis's order.
  [[nodiscard]] Group& operator[](std::string_view axis);
  /// The ranks that differ along these axes only, the last axis fastest. Created by the first call, which is collective
  /// over its members; later calls return the same group.
  [[nodiscard]] Group& group(std::span<const std::string> axes);

  [[nodiscard]] const std::vector<MeshAxis>& axes() const { return axes_; }
  [[nodiscard]] int size(std::string_view axis) const;
  /// This rank's coordinate on the axis: its rank in the axis's group.
  [[nodiscard]] int coordinate(std::string_view axis) const;
  /// This rank's coordinates on all axes.
  [[nodiscard]] const std::vector<int>& coordinates() const { return coordinates_; }
  /// The rank (of the group the mesh was made of) at these coordinates.
  [[nodiscard]] int rank_at(std::span<const int> coordinates) const;
  /// The rank `distance` steps along the axis, in the group that the mesh was made of: around its end if the axis is periodic, and
  /// nobody beyond it otherwise.
  [[nodiscard]] int neighbour(std::string_view axis, int distance) const;
  /// Fills the margins of an array, in place, with what lies next to them on the neighbours: corners, too. What lies beyond an open edge
  /// stays as it is. All ranks that are neighbours call it, with arrays whose slabs have the same shapes.
  void exchange(View array, const HaloOptions& options = {});
  /// What the neighbours pass as `data`: for each axis of the mesh what comes from the lower neighbour, then from the upper one, each a part of
  /// axis 0 of `out`. Parts of nobody stay as they are. All ranks that are neighbours call it, with arrays of the same shape.
  void neighbour_all_gather(View data, View out, const CallOptions& options = {});
  /// The same, where each neighbour gets its own part of axis 0 of `data`, in the order of `out`.
  void neighbour_all_to_all(View data, View out, const CallOptions& options = {});
  /// A description of the grid: its sizes, then one line per row with its ranks and nodes.
  [[nodiscard]] std::string describe() const;

  /// For bindings, which exchange by themselves. Exchanges along an axis have numbers, so that what belongs to one that a rank refused, or
  /// gave up, is not taken for a part of the next one.
  std::uint8_t next_number(std::size_t axis);
  /// Of an exchange that this rank refuses: it has its number along every axis.
  void skip_exchange();

 private:
  [[nodiscard]] std::size_t index_of(std::string_view axis) const;
  [[nodiscard]] int neighbour_at(std::size_t axis, int distance) const;
  void exchange_parts(const View& data, const View& out, bool sends_all, Duration timeout);
  /// What `check` gives; if it refuses the arguments, the exchange is skipped.
  template <class Check>
  auto made_or_skipped(Check check);
  [[nodiscard]] std::vector<int> ranks_along(std::span<const std::size_t> axes) const;

  Group group_;
  std::vector<MeshAxis> axes_;
  std::vector<int> node_of_;  // of each rank of the group
  std::vector<int> ranks_;    // at each place, row by row
  std::vector<int> coordinates_;
  CallOptions options_;
  std::map<std::string, Group> groups_;  // by the names of their axes
  std::vector<std::uint8_t> numbers_;    // of the latest exchange along each axis
};

}  // namespace tutti
