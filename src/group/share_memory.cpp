// share_memory.cpp: the members of a new group that share a host find each other's seats.
// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

std::vector<int> GroupCore::members_of_host() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < facts_.size; ++rank) {
    const auto node = [&](int r) { return facts_.node_of.empty() ? 0 : facts_.node_of[static_cast<std::size_t>(r)]; };
    if (node(rank) == node(facts_.rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::shared_ptr<IntranodeExecutor> GroupCore::make_intranode_executor(const std::vector<int>& ranks) const {
  if (runtime_->local_peers() == nullptr || ranks.size() < 2) return nullptr;
  std::vector<int> members;
  int own = 0;
  for (const int rank : ranks) {
    if (rank == facts_.rank) own = static_cast<int>(members.size());
    members.push_back(facts_.world_of[static_cast<std::size_t>(rank)]);
  }
  try {
    return std::make_shared<IntranodeExecutor>(
        IntranodeExecutor::Parts{.segment = {.local_peers = runtime_->local_peers(),
                                             .memory = runtime_->memory(),
                                             .members = std::move(members)},
                                 .rank = own,
                                 .cross_memory = runtime_->may_read_local_peers(),
                                 .oversubscribed = runtime_->is_oversubscribed(),
                                 .limits = runtime_->table().shared});
  } catch (const Error& error) {
    runtime_->log().warn("a group of {} ranks does without shared memory: {}", facts_.size, error.what());
    return nullptr;
  }
}

bool GroupCore::share_memory(Duration timeout) {
  if (!runtime_->may_share_memory() || !any_local_peers(facts_.node_of, facts_.size)) return false;
  const std::vector<int> ranks = members_of_host();
  const std::shared_ptr<IntranodeExecutor> intranode = make_intranode_executor(ranks);
  const std::uint64_t oversubscribed_here = runtime_->is_oversubscribed() ? shares_its_core : 0;
  const std::array<std::uint64_t, 1> control_block{intranode ? intranode->control_block_offset() | oversubscribed_here
                                                             : no_control_block};
  std::vector<std::uint64_t> control_blocks(static_cast<std::size_t>(facts_.size));
  Group(shared_from_this()).all_gather(control_block, control_blocks, {.timeout = timeout});

  std::vector<std::uint64_t> offsets;
  bool oversubscribed_anywhere = false;
  for (const int rank : ranks) {
    const std::uint64_t told = control_blocks[static_cast<std::size_t>(rank)];
    oversubscribed_anywhere = oversubscribed_anywhere || (told & shares_its_core) != 0;
    offsets.push_back(told & ~shares_its_core);
  }
  if (intranode == nullptr || std::ranges::count(offsets, no_control_block) > 0) return true;
  intranode->connect(offsets, oversubscribed_anywhere);
  const auto guard = runtime_->lock();
  intranode_ = intranode;
  all_are_local_ = static_cast<int>(ranks.size()) == facts_.size;
  prepared_.clear();
  backends_ = Backends({.facts = &facts_,
                        .table = table_,
                        .transport = &runtime_->transport(),
                        .local_peers = intranode,
                        .extensions = runtime_->backend_extensions()});
  return true;
}

}  // namespace tutti
