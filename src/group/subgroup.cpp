// subgroup.cpp: groups from groups: by a list that only its members need call, or by color.
// SPDX-License-Identifier: Apache-2.0
#include "group/subgroup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include <tutti/error.hpp>
#include <tutti/group.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/share_memory.hpp"

namespace tutti {
namespace {

void check_ranks(std::span<const int> ranks, int size) {
  if (ranks.empty()) throw InvalidArgument("subgroup: the list of ranks is empty; a group needs a member");
  std::set<int> seen;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size) {
      throw InvalidArgument(
          fmt::format("subgroup: rank {} is outside the group, whose ranks are 0 to {}", rank, size - 1));
    }
    if (!seen.insert(rank).second) throw InvalidArgument(fmt::format("subgroup: rank {} is listed twice", rank));
  }
}

[[noreturn]] void throw_failed(const control::Cause& cause, const Runtime& runtime, std::span<const int> members) {
  const std::string text =
      fmt::format("the group of world ranks [{}] was not made: {}", fmt::join(members, ", "), cause.text);
  switch (cause.kind) {
    case control::Cause::Kind::mismatch: throw Mismatch(text);
    case control::Cause::Kind::timeout: throw Timeout(text);
    case control::Cause::Kind::lost: {
      const int rank = cause.culprits.empty() ? -1 : cause.culprits.front();
      throw PeerLost(text, rank, runtime.host_of(rank), cause.text);
    }
    default: throw Aborted(text);
  }
}

/// Consecutive numbers for the nodes of these ranks; empty where they are all on one.
std::vector<int> nodes_of(const Runtime& runtime, std::span<const int> members) {
  std::vector<int> nodes, result;
  for (const int member : members) {
    const int node = runtime.node_of(member);
    auto found = std::find(nodes.begin(), nodes.end(), node);
    if (found == nodes.end()) found = nodes.insert(nodes.end(), node);
    result.push_back(static_cast<int>(found - nodes.begin()));
  }
  return nodes.size() > 1 ? result : std::vector<int>();
}

std::uint64_t agree_on_id(Runtime& runtime, const std::vector<int>& members, std::uint64_t parent, TimePoint deadline) {
  std::shared_ptr<const control::Creation> creation;
  {
    const auto guard = runtime.lock();
    creation = runtime.control().create({.members = members, .key = parent, .blob = {}, .deadline = deadline});
  }
  using State = control::Creation::State;
  runtime.drive([&] { return creation->state != State::pending; }, TimePoint::max());
  if (creation->state == State::failed) throw_failed(creation->cause, runtime, members);
  return creation->group;
}

}  // namespace

std::shared_ptr<GroupCore> make_subgroup(GroupCore& parent, std::span<const int> ranks, Duration timeout) {
  check_ranks(ranks, parent.facts().size);
  Runtime& runtime = parent.runtime();
  runtime.check_alive();
  GroupFacts facts{.rank = -1, .size = static_cast<int>(ranks.size())};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    facts.world_of.push_back(parent.facts().world_of[static_cast<std::size_t>(ranks[i])]);
    if (ranks[i] == parent.facts().rank) facts.rank = static_cast<int>(i);
  }
  if (facts.rank < 0) return std::make_shared<GroupCore>(parent.runtime_handle(), std::move(facts.world_of));
  if (facts.size == 1) {
    facts.id = runtime.private_id();
  } else {
    const Duration limit = timeout > Duration::zero() ? timeout : runtime.parts().default_timeout;
    facts.id = agree_on_id(runtime, facts.world_of, parent.facts().id, deadline_after(runtime.clock().now(), limit));
  }
  facts.node_of = nodes_of(runtime, facts.world_of);
  auto core = std::make_shared<GroupCore>(parent.runtime_handle(), std::move(facts), runtime.parts().table);
  share_memory(core, timeout);
  return core;
}

std::vector<int> ranks_of_color(const Group& group, int color, int key, Duration timeout) {
  const auto size = static_cast<std::size_t>(group.size());
  const std::array<std::int32_t, 2> mine{color, key};
  std::vector<std::int32_t> all(2 * size);
  group.all_gather(mine, all, {.timeout = timeout});
  std::vector<int> ranks;
  for (std::size_t i = 0; i < size; ++i) {
    if (color >= 0 && all[2 * i] == color) ranks.push_back(static_cast<int>(i));
  }
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return all[2 * static_cast<std::size_t>(rank) + 1]; });
  return ranks;
}

}  // namespace tutti
