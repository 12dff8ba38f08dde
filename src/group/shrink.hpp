// shrink.hpp: the members of a group that are left, as a new group.
// SPDX-License-Identifier: Apache-2.0
//
// Every member that is left calls it, and all get the same group or an error.
//
// 1. Each proposes the members that it knows to be neither lost nor gone. Decisions about lost ranks reach all ranks in the same order
//    (control.hpp), so the proposals become equal.
// 2. The group is made only if all its members have joined under the same list (creation.hpp). If one is lost meanwhile the creation fails
//    for all, and each proposes anew.
// 3. A part of the members goes on without the others only if these cannot go on without it: they are known to have ended (by the launcher, or
//    by the system on the same host) or have left, or they are fewer; if they are as many, the part with the lowest rank goes on.
// 4. The new group has an id that no group had before. A rank that was taken for dead and wakes up is lost for all: nothing that it sends is
//    taken, and its own calls raise.
#pragma once

#include <memory>

#include <tutti/clock.hpp>

namespace tutti {

class GroupCore;

std::shared_ptr<GroupCore> shrink_group(GroupCore& parent, Duration timeout);

}  // namespace tutti
