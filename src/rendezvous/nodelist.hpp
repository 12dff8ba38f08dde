// nodelist.hpp: Slurm's short forms for lists of hosts and of task counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::rendezvous {

// "a[1-3,07],b,rack[0-1]node[1-2]" → a1 a2 a3 a07 b rack0node1 …, in the order written; leading zeros keep their width.
// InvalidArgument for anything else, and for more than 2^20 nodes.
std::vector<std::string> expand_nodelist(std::string_view text);

// "4(x2),3": the tasks of one node. InvalidArgument for anything else, and for a node that the list does not have.
int tasks_on_node(std::string_view text, int node);

}  // namespace tutti::rendezvous
