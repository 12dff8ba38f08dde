// agent.hpp: the part of tuttirun that runs on every host of a job: `tuttirun --agent`.
// SPDX-License-Identifier: Apache-2.0
//
// An agent takes its orders from its standard input and reports on its standard output (agent_frame.hpp). It starts the
// agents below it in the tree, and its own host's ranks under a guard, as tuttirun does on one host.
//
// 1. If its input ends, or nothing comes on it for the silence limit, its parent is gone: it ends its ranks.
// 2. If it dies itself, its guard ends the ranks, and the remote shells that it started end with it, so that 1. holds
//    for the agents below.
#pragma once

#include <span>

namespace tutti::launch {

// `title` is the memory in which this process's arguments lie. Returns the exit status.
int run_agent(std::span<char> title);

}  // namespace tutti::launch
