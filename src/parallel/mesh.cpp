// mesh.cpp: the positions of ranks in a grid, and their groups along its axes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <tutti/error.hpp>
#include <tutti/mesh.hpp>

#include "base/hash.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/structure_words.hpp"
#include "parallel/halo.hpp"

namespace tutti {
namespace {

constexpr int several_nodes = -1;

// Ranks that belong together, and the node they are all on.
struct Block {
  std::vector<int> ranks;
  int node = several_nodes;
};

Block join(std::span<const Block> blocks) {
  Block joined{.ranks = {}, .node = blocks.front().node};
  for (const Block& block : blocks) {
    joined.ranks.insert(joined.ranks.end(), block.ranks.begin(), block.ranks.end());
    if (block.node != joined.node) joined.node = several_nodes;
  }
  return joined;
}

// `size` blocks at a time become one: those of one node first, as long as there are enough of them.
std::vector<Block> group_blocks(const std::vector<Block>& blocks, int size) {
  std::map<int, std::vector<Block>> by_node;
  for (const Block& block : blocks) by_node[block.node].push_back(block);
  std::vector<Block> result, left;
  const auto length = static_cast<std::size_t>(size);
  for (auto& [node, own] : by_node) {
    const std::size_t whole = node == several_nodes ? 0 : own.size() / length * length;
    for (std::size_t i = 0; i < whole; i += length) result.push_back(join(std::span(own).subspan(i, length)));
    left.insert(left.end(), own.begin() + static_cast<std::ptrdiff_t>(whole), own.end());
  }
  const auto by_first_rank = [](const Block& a, const Block& b) { return a.ranks.front() < b.ranks.front(); };
  std::ranges::sort(left, by_first_rank);
  for (std::size_t i = 0; i < left.size(); i += length) result.push_back(join(std::span(left).subspan(i, length)));
  std::ranges::sort(result, by_first_rank);
  return result;
}

std::string in_words(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> words;
  for (const MeshAxis& axis : axes)
    words.push_back(fmt::format("{}={}{}", axis.name, axis.size, axis.periodic ? " (periodic)" : ""));
  return fmt::format("{}", fmt::join(words, " × "));
}

// Names once, sizes that multiply to the group's size; −1 becomes what is left.
void check_axes(std::vector<MeshAxis>& axes, int group_size) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(fmt::format("cannot make a mesh {} of {} ranks: {}", in_words(axes), group_size, why));
  };
  if (axes.empty()) refuse("it has no axes");
  std::set<std::string> names;
  std::int64_t known = 1;
  MeshAxis* open = nullptr;
  for (MeshAxis& axis : axes) {
    if (axis.name.empty() || !names.insert(axis.name).second) refuse("every axis needs a name of its own");
    if (axis.size == -1) {
      if (open != nullptr) refuse("only one axis can be −1");
      open = &axis;
    } else if (axis.size < 1 || axis.size > group_size) {
      refuse(fmt::format("{} cannot have that size; give 1 to {}, or −1 for what is left", axis.name, group_size));
    } else {
      known *= axis.size;
    }
    if (known > group_size) break;
  }
  if (open != nullptr && group_size % known == 0) {
    open->size = static_cast<int>(group_size / known);
    known *= open->size;
  }
  if (known != group_size) refuse(fmt::format("the sizes must multiply to {}", group_size));
}

// All members make the same mesh, or none does: a call that is compared, and refused, like every other.
void agree_on_axes(const Group& group, std::vector<MeshAxis>& axes, Duration timeout) {
  GroupCore& core = *group.core();
  try {
    check_axes(axes, group.size());
  } catch (const InvalidArgument& error) {
    const GroupCore::Entry entry(core, "Mesh");
    core.decline(error.what());
    throw;
  }
  const std::string words = in_words(axes);
  const std::uint64_t structure = Hash().add(words).value();
  note_structure(structure, "the mesh " + words);
  std::int32_t joined = 1;
  const View data(std::span(&joined, 1));
  group.run({.verb = Verb::all_reduce, .input = data, .output = data, .op = Op::max, .structure = structure}, timeout);
}

}  // namespace

std::vector<int> arrange_mesh(std::span<const int> node_of, std::span<const int> sizes) {
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    blocks.push_back({.ranks = {static_cast<int>(rank)}, .node = node_of[rank]});
  }
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    if (sizes[axis] < 1 || blocks.size() % static_cast<std::size_t>(sizes[axis]) != 0) {
      throw InvalidArgument(fmt::format("cannot arrange {} ranks as {}", node_of.size(), fmt::join(sizes, " × ")));
    }
    blocks = group_blocks(blocks, sizes[axis]);
  }
  return blocks.empty() ? std::vector<int>{} : join(blocks).ranks;
}

using parallel::exchange_slabs, parallel::halo_axes, parallel::HaloAxis, parallel::numbered, parallel::Slabs,
    parallel::slabs_of;

Mesh::Mesh(const Group& group, std::vector<MeshAxis> axes, const CallOptions& options)
    : group_(group), axes_(std::move(axes)), options_(options) {
  if (!group.valid() || group.rank() < 0) throw InvalidArgument("cannot make a mesh: this process is not in the group");
  agree_on_axes(group, axes_, options_.timeout);
  numbers_.resize(axes_.size());
  for (const int member : group.members()) node_of_.push_back(group.core()->runtime().node_of(member));
  std::vector<int> sizes;
  for (const MeshAxis& axis : axes_) sizes.push_back(axis.size);
  ranks_ = arrange_mesh(node_of_, sizes);
  auto place = static_cast<int>(std::ranges::find(ranks_, group.rank()) - ranks_.begin());
  coordinates_.resize(axes_.size());
  for (std::size_t axis = axes_.size(); axis-- > 0; place /= sizes[axis]) coordinates_[axis] = place % sizes[axis];
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    groups_.emplace(axes_[axis].name, group_.subgroup(ranks_along(std::span(&axis, 1)), {.timeout = options_.timeout}));
  }
}

std::size_t Mesh::index_of(std::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) return i;
  }
  throw InvalidArgument(fmt::format("there is no axis \"{}\" in the mesh {}", axis, in_words(axes_)));
}

std::vector<int> Mesh::ranks_along(std::span<const std::size_t> axes) const {
  std::vector<std::vector<int>> places = {coordinates_};
  for (const std::size_t axis : axes) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& place : places) {
      for (int i = 0; i < axes_[axis].size; ++i) {
        longer.push_back(place);
        longer.back()[axis] = i;
      }
    }
    places = std::move(longer);
  }
  std::vector<int> ranks;
  for (const std::vector<int>& place : places) ranks.push_back(rank_at(place));
  return ranks;
}

Group& Mesh::operator[](std::string_view axis) { return groups_.at(axes_[index_of(axis)].name); }

Group& Mesh::group(std::span<const std::string> axes) {
  if (axes.size() == 1) return (*this)[axes.front()];
  std::vector<std::size_t> indices;
  for (const std::string& axis : axes) {
    const std::size_t index = index_of(axis);
    if (std::ranges::find(indices, index) != indices.end()) {
      throw InvalidArgument(fmt::format("axis \"{}\" is named twice", axis));
    }
    indices.push_back(index);
  }
  if (axes.empty()) throw InvalidArgument("name at least one axis of the mesh " + in_words(axes_));
  const std::string key = fmt::format("{}", fmt::join(axes, "\n"));
  auto found = groups_.find(key);
  if (found == groups_.end())
    found = groups_.emplace(key, group_.subgroup(ranks_along(indices), {.timeout = options_.timeout})).first;
  return found->second;
}

int Mesh::size(std::string_view axis) const { return axes_[index_of(axis)].size; }
int Mesh::coordinate(std::string_view axis) const { return coordinates_[index_of(axis)]; }

int Mesh::rank_at(std::span<const int> coordinates) const {
  if (coordinates.size() != axes_.size()) {
    throw InvalidArgument(
        fmt::format("the mesh {} has {} axes, not {}", in_words(axes_), axes_.size(), coordinates.size()));
  }
  std::size_t place = 0;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (coordinates[axis] < 0 || coordinates[axis] >= axes_[axis].size) {
      throw InvalidArgument(
          fmt::format("there is no place {} on axis {} of {}", coordinates[axis], axes_[axis].name, axes_[axis].size));
    }
    place = place * static_cast<std::size_t>(axes_[axis].size) + static_cast<std::size_t>(coordinates[axis]);
  }
  return ranks_[place];
}

int Mesh::neighbour(std::string_view axis, int distance) const { return neighbour_at(index_of(axis), distance); }

int Mesh::neighbour_at(std::size_t axis, int distance) const {
  const int size = axes_[axis].size;
  std::vector<int> place = coordinates_;
  if (!axes_[axis].periodic && (distance < -place[axis] || distance >= size - place[axis])) return nobody;
  place[axis] = ((place[axis] + distance % size) + size) % size;
  return rank_at(place);
}

std::uint8_t Mesh::next_number(std::size_t axis) {
  numbers_[axis] = static_cast<std::uint8_t>(numbers_[axis] % 255 + 1);  // 0 is for messages without one
  return numbers_[axis];
}

void Mesh::skip_exchange() {
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) next_number(axis);
}

template <class Check>
auto Mesh::made_or_skipped(Check check) {
  try {
    return check();
  } catch (const InvalidArgument&) {
    skip_exchange();
    throw;
  }
}

// Axis by axis: the slabs of the later axes hold the margins of the earlier ones, so that corners come from where they belong.
void Mesh::exchange(View array, const HaloOptions& options) {
  GroupCore& core = *group_.core();
  const GroupCore::Entry entry(core, "exchange");
  const std::vector<HaloAxis> axes = made_or_skipped([&] { return halo_axes(array, axes_.size(), options); });
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].halo == 0) continue;
    const Slabs slabs =
        numbered(slabs_of(array, axes[i], i, {neighbour_at(i, -1), neighbour_at(i, 1)}), next_number(i));
    exchange_slabs(core, std::span(&slabs, 1), options.timeout);
  }
}

void Mesh::exchange_parts(const View& data, const View& out, bool sends_all, Duration timeout) {
  const std::string_view verb = sends_all ? "neighbour_all_gather" : "neighbour_all_to_all";
  const parallel::NeighbourParts parts{
      .verb = verb, .data = data, .out = out, .mesh_axes = axes_.size(), .sends_all = sends_all};
  GroupCore& core = *group_.core();
  const GroupCore::Entry entry(core, verb);
  made_or_skipped([&] { check_parts(parts); });
  std::vector<Slabs> slabs;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    slabs.push_back(numbered(slabs_of(parts, i, {neighbour_at(i, -1), neighbour_at(i, 1)}), next_number(i)));
  exchange_slabs(core, slabs, timeout);
}

void Mesh::neighbour_all_gather(View data, View out, const CallOptions& options) {
  exchange_parts(data, out, true, options.timeout);
}
void Mesh::neighbour_all_to_all(View data, View out, const CallOptions& options) {
  exchange_parts(data, out, false, options.timeout);
}

std::string Mesh::describe() const {
  const std::set<int> nodes(node_of_.begin(), node_of_.end());
  std::string text = fmt::format("mesh {}: {} ranks on {} node{}\n", in_words(axes_), ranks_.size(), nodes.size(),
                                 nodes.size() == 1 ? "" : "s");
  const auto row = static_cast<std::size_t>(axes_.back().size);
  const std::size_t width = std::to_string(ranks_.size() - 1).size();
  for (std::size_t begin = 0; begin < ranks_.size(); begin += row) {
    std::string head;
    std::size_t rest = begin / row;
    for (std::size_t axis = axes_.size() - 1; axis-- > 0; rest /= static_cast<std::size_t>(axes_[axis].size)) {
      head = fmt::format("{} {}  {}", axes_[axis].name, rest % static_cast<std::size_t>(axes_[axis].size), head);
    }
    text += fmt::format("  {}{}:", head, axes_.back().name);
    std::set<int> nodes_of_row;
    for (std::size_t i = begin; i < begin + row; ++i) {
      text += fmt::format(" {:>{}}", ranks_[i], width);
      nodes_of_row.insert(node_of_[static_cast<std::size_t>(ranks_[i])]);
    }
    text += fmt::format("   node {}\n", fmt::join(nodes_of_row, ", "));
  }
  return text;
}

}  // namespace tutti
