// group_kinds.hpp: the groups in which every case is tried: the world, and groups that are not the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <tutti/group.hpp>

namespace tutti::contract {

enum class GroupKind : std::uint8_t {
  world,
  every_second,    // ranks 0, 2, 4, …; only they take part in making it
  reversed,        // all ranks, the last one first
  split_of_split,  // halves of the halves, in reversed order: up to four disjoint groups side by side
};
inline constexpr int group_kind_count = 4;
std::string_view name_of(GroupKind kind);

/// This rank's group of each kind. Collective.
class Groups {
 public:
  explicit Groups(const Group& world);
  /// One that this rank is not in has rank −1.
  [[nodiscard]] Group& operator[](GroupKind kind) { return groups_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<Group, group_kind_count> groups_;
};

}  // namespace tutti::contract
