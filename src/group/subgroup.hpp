// subgroup.hpp: groups from groups: by a list that only its members need call, or by color.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <tutti/group.hpp>

namespace tutti {

/// `ranks` are those of the parent. A rank that is not among them gets a group that it does not belong to.
std::shared_ptr<GroupCore> make_subgroup(GroupCore& parent, std::span<const int> ranks, Duration timeout);
/// The ranks of this color in the order of their keys; none for a color below 0. All ranks of the group call this.
std::vector<int> ranks_of_color(const Group& group, int color, int key, Duration timeout);

}  // namespace tutti
