// share_memory.cpp: the members of a new group that share a host find each other's memory.
// SPDX-License-Identifier: Apache-2.0
#include "group/share_memory.hpp"

#include <algorithm>
#include <array>

#include <tutti/error.hpp>
#include <tutti/group.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "intranode/intranode_executor.hpp"

namespace tutti {
namespace {

constexpr std::uint64_t no_control_block = 0;  // an arena begins with its header, never with a control block
constexpr std::uint64_t shares_its_core = 1;   // beside the offset, which is a page's

/// Whether any two of these are local peers: the same on all of them.
bool any_local_peers(const std::vector<int>& nodes, int size) {
  if (nodes.empty()) return size > 1;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::find(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, nodes.end(), nodes[i]) != nodes.end())
      return true;
  }
  return false;
}

std::vector<int> members_of_host(const GroupFacts& facts) {
  const auto node = [&](int rank) { return facts.node_of.empty() ? 0 : facts.node_of[static_cast<std::size_t>(rank)]; };
  std::vector<int> ranks;
  for (int rank = 0; rank < facts.size; ++rank) {
    if (node(rank) == node(facts.rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::shared_ptr<IntranodeExecutor> make_executor(const GroupCore& group, const std::vector<int>& ranks) {
  const Runtime::Parts& parts = group.runtime().parts();
  if (parts.local_peers == nullptr || ranks.size() < 2) return nullptr;
  std::vector<int> members;
  int own = 0;
  for (const int rank : ranks) {
    if (rank == group.facts().rank) own = static_cast<int>(members.size());
    members.push_back(group.facts().world_of[static_cast<std::size_t>(rank)]);
  }
  try {
    return std::make_shared<IntranodeExecutor>(IntranodeExecutor::Parts{
        .segment = {.local_peers = parts.local_peers, .memory = parts.memory, .members = std::move(members)},
        .rank = own,
        .cross_memory = parts.may_read_local_peers,
        .oversubscribed = parts.oversubscribed,
        .limits = parts.table.shared,
        .tracing = {.trace = parts.recorder ? parts.recorder->steps() : nullptr, .group = group.facts().id}});
  } catch (const Error& error) {
    parts.log.warn("a group of {} ranks does without shared memory: {}", group.facts().size, error.what());
    return nullptr;
  }
}

}  // namespace

bool share_memory(const std::shared_ptr<GroupCore>& group, Duration timeout) {
  const Runtime::Parts& parts = group->runtime().parts();
  if (!parts.may_share_memory || !any_local_peers(group->facts().node_of, group->facts().size)) return false;
  const std::vector<int> ranks = members_of_host(group->facts());
  const std::shared_ptr<IntranodeExecutor> intranode = make_executor(*group, ranks);
  const std::uint64_t oversubscribed_here = parts.oversubscribed ? shares_its_core : 0;
  const std::array<std::uint64_t, 1> control_block{intranode ? intranode->control_block_offset() | oversubscribed_here
                                                             : no_control_block};
  std::vector<std::uint64_t> control_blocks(static_cast<std::size_t>(group->facts().size));
  Group(group).all_gather(control_block, control_blocks, {.timeout = timeout});

  std::vector<std::uint64_t> offsets;
  bool oversubscribed_anywhere = false;
  for (const int rank : ranks) {
    const std::uint64_t told = control_blocks[static_cast<std::size_t>(rank)];
    oversubscribed_anywhere = oversubscribed_anywhere || (told & shares_its_core) != 0;
    offsets.push_back(told & ~shares_its_core);
  }
  if (intranode == nullptr || std::ranges::count(offsets, no_control_block) > 0) return true;
  intranode->connect(offsets, oversubscribed_anywhere);
  const auto guard = group->runtime().lock();
  group->use_local_peers(intranode);
  return true;
}

}  // namespace tutti
