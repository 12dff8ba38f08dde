// guard_loop.hpp: the main loop of the guard process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/guard.hpp"

namespace tutti::launch {

// Runs in a process of its own, forked from tuttirun; `control` is the guard's end of the socket.
[[noreturn]] void run_guard(GuardPlan& plan, int control);

}  // namespace tutti::launch
