// group_kinds.cpp: the groups in which every case is tried.
// SPDX-License-Identifier: Apache-2.0
#include "group_kinds.hpp"

#include <vector>

namespace tutti::contract {

std::string_view name_of(GroupKind kind) {
  constexpr std::string_view names[] = {"world", "every second rank", "reversed", "split of a split"};
  return names[static_cast<int>(kind)];
}

Groups::Groups(const Group& world) {
  Group whole = world;
  std::vector<int> seconds, backwards;
  for (int rank = 0; rank < world.size(); rank += 2) seconds.push_back(rank);
  for (int rank = world.size(); rank-- > 0;) backwards.push_back(rank);
  Group half = whole.split(world.rank() % 2);
  groups_ = {whole, whole.subgroup(seconds), whole.subgroup(backwards), half.split(half.rank() % 2, -half.rank())};
}

}  // namespace tutti::contract
