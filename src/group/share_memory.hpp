// share_memory.hpp: the members of a new group that share a host find each other's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/clock.hpp>

namespace tutti {

class GroupCore;

/// The group's first call, if any of its members are local peers (false: none was made). They use each other's memory from then on.
bool share_memory(const std::shared_ptr<GroupCore>& group, Duration timeout);

}  // namespace tutti
