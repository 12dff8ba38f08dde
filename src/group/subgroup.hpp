// subgroup.hpp: groups from groups: by a list that only its members need call, or by color.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tutti/group.hpp>

namespace tutti {

/// What a group may be made from. A rank that was interrupted in the call by which a parent's ranks agree does not come to make one.
enum class Parent : std::uint8_t { any, unbroken };

/// `ranks` are those of the parent. A rank that is not among them gets a group that it does not belong to.
std::shared_ptr<GroupCore> make_subgroup(GroupCore& parent, std::span<const int> ranks, const GroupOptions& options,
                                         Parent state = Parent::any);
struct JoinTerms {
  std::vector<int> members = {};  // ranks in the world; this one is among them
  std::uint64_t key = 0;          // tells apart groups with the same members
  TimePoint deadline{};
  Duration timeout{};     // of the group's first call
  std::string backend{};  // as the group asks for it
  Parent parent = Parent::any;
};
/// Makes a group together with its other members. Once it is made, it is returned, also if a member is lost at once: the group's
/// first call raises it then.
std::shared_ptr<GroupCore> join_group(GroupCore& parent, const JoinTerms& terms);
/// Before the members tell each other their colors. Throws for a backend that cannot be had, once the others are told.
void check_split(GroupCore& parent, const GroupOptions& options);
/// The ranks of this color in the order of their keys; none for a color below 0. All ranks of the group call this.
std::vector<int> ranks_of_color(const Group& group, int color, int key, Duration timeout);

}  // namespace tutti
