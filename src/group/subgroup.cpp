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

/// The others must not wait for this rank, nor use a group that it does not have.
void give_up(Runtime& runtime, const control::Creation& creation, std::string_view why) {
  if (runtime.is_forked()) return;
  const auto guard = runtime.lock();
  const int rank = runtime.transport().rank();
  runtime.control().give_up(creation, {.kind = control::Cause::Kind::aborted,
                                       .culprits = {rank},
                                       .sequence = 0,
                                       .text = fmt::format("rank {} {}", rank, why)});
}

/// Before a creation: the members would wait for this rank, which cannot take part in it.
void refuse_part(GroupCore& parent, const std::vector<int>& members, std::string_view why) {
  if (members.size() == 1) return;
  Runtime& runtime = parent.runtime();
  std::shared_ptr<const control::Creation> creation;
  {
    const auto guard = runtime.lock();
    creation = runtime.control().create({.members = members, .key = parent.facts().id});
  }
  give_up(runtime, *creation, fmt::format("refused its part: {}", why));
}

/// The group's id, and what the lowest member told.
std::shared_ptr<const control::Creation> create(GroupCore& parent, const JoinTerms& terms) {
  Runtime& runtime = parent.runtime();
  std::shared_ptr<const control::Creation> creation;
  {
    const auto guard = runtime.lock();
    creation = runtime.control().create({.members = terms.members,
                                         .key = terms.key,
                                         .blob = backend_record(terms.backend),
                                         .deadline = terms.deadline});
  }
  using State = control::Creation::State;
  const auto is_in_vain = [&] { return terms.parent == Parent::unbroken && parent.parts().failure.is_broken(); };
  try {
    runtime.wait([&] { return creation->state != State::pending || is_in_vain(); }, TimePoint::max());
  } catch (...) {
    give_up(runtime, *creation, "was interrupted while it made the group");
    throw;
  }
  if (creation->state == State::pending) {
    give_up(runtime, *creation, "gave up making the group, because the group that it is made from is broken");
    const auto guard = runtime.lock();
    parent.parts().failure.check_usable();
  }
  if (creation->state == State::failed) throw_failed(creation->cause, runtime, terms.members);
  return creation;
}

struct Formed {
  std::shared_ptr<GroupCore> group{};
  std::vector<std::byte> lowest{};  // the record of the lowest member
};

Formed form_group(GroupCore& parent, const JoinTerms& terms, GroupBackend first = {}) {
  Runtime& runtime = parent.runtime();
  const int self = parent.facts().world_of[static_cast<std::size_t>(parent.facts().rank)];
  GroupFacts facts{.size = static_cast<int>(terms.members.size())};
  facts.rank = static_cast<int>(std::ranges::find(terms.members, self) - terms.members.begin());
  Formed formed;
  if (facts.size == 1) {
    facts.id = runtime.private_id();
  } else {
    const auto creation = create(parent, terms);
    facts.id = creation->group;
    formed.lowest = creation->blob;
  }
  facts.world_of = terms.members;
  facts.node_of = nodes_of(runtime, facts.world_of);
  formed.group = GroupCore::make(parent.runtime_handle(), std::move(facts), runtime.parts().table, std::move(first));
  return formed;
}

}  // namespace

std::shared_ptr<GroupCore> make_subgroup(GroupCore& parent, std::span<const int> ranks, const GroupOptions& options,
                                         Parent state) {
  check_ranks(ranks, parent.facts().size);
  Runtime& runtime = parent.runtime();
  runtime.check_alive();
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(parent.facts().world_of[static_cast<std::size_t>(rank)]);
  const bool is_member = std::ranges::find(ranks, parent.facts().rank) != ranks.end();
  std::string backend;
  try {
    backend = backend_to_ask_for(parent, options.backend);
  } catch (const Error& error) {
    if (is_member) refuse_part(parent, members, error.what());
    throw;
  }
  if (!is_member) return GroupCore::make(parent.runtime_handle(), std::move(members));
  const Duration timeout = options.timeout;
  const Duration limit = timeout > Duration::zero() ? timeout : runtime.parts().default_timeout;
  const Formed formed = form_group(parent, {.members = std::move(members),
                                            .key = parent.facts().id,
                                            .deadline = deadline_after(runtime.clock().now(), limit),
                                            .backend = backend,
                                            .parent = state});
  check_same_backend(*formed.group, backend, formed.lowest);
  share_memory(formed.group, timeout);
  use_backend(formed.group, parent, backend, timeout);
  log_backend(*formed.group, false);
  return formed.group;
}

std::shared_ptr<GroupCore> join_group(GroupCore& parent, const JoinTerms& terms) {
  // MPI does not go on once a rank is lost.
  const bool is_on_mpi = parent.backend().mpi || parent.runtime().parts().mpi;
  auto core = form_group(parent, terms, is_on_mpi ? GroupBackend{.name = "shm"} : parent.backend()).group;
  try {
    share_memory(core, terms.timeout);
  } catch (const PeerLost&) {}  // the group is broken, with this cause
  return core;
}

void check_split(GroupCore& parent, const GroupOptions& options) {
  try {
    static_cast<void>(backend_to_ask_for(parent, options.backend));
  } catch (const Error& error) {
    const GroupCore::Entry entry(parent, "split");
    parent.decline(error.what());
    throw;
  }
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
