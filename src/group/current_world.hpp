// current_world.hpp: the world that this process has joined by init().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace tutti {

class GroupCore;
/// Null: none.
std::shared_ptr<GroupCore> current_world();

}  // namespace tutti
