// settled_limits.hpp: what a table leaves open, decided by the machine and the members.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/shared_limits.hpp"

namespace tutti::intranode {

/// The same on every member, as they share a machine.
[[nodiscard]] SharedLimits settled(SharedLimits limits, int size);
/// For members of whom some share cores: to wait for each other is what costs most.
[[nodiscard]] SharedLimits for_oversubscribed(SharedLimits limits);

}  // namespace tutti::intranode
