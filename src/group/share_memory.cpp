// share_memory.cpp: the members of a new group that share a host find each other's seats.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <tutti/error.hpp>
#include <tutti/group.hpp>

#include "group/circle_carrier.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

constexpr std::uint64_t no_seat = 0;          // an arena begins with its header, never with a seat
constexpr std::uint64_t shares_its_core = 1;  // beside the offset, which is a page's

/// Whether any two of these are neighbours: the same on all of them.
bool any_neighbours(const std::vector<int>& nodes, int size) {
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

std::shared_ptr<CircleCarrier> GroupCore::take_seat(const std::vector<int>& ranks) const {
  if (runtime_->neighbours() == nullptr || ranks.size() < 2) return nullptr;
  std::vector<int> members;
  int own = 0;
  for (const int rank : ranks) {
    if (rank == facts_.rank) own = static_cast<int>(members.size());
    members.push_back(facts_.world_of[static_cast<std::size_t>(rank)]);
  }
  try {
    return std::make_shared<CircleCarrier>(CircleCarrier::Parts{
        .commons = {.neighbours = runtime_->neighbours(), .memory = runtime_->memory(), .members = std::move(members)},
        .rank = own,
        .cross_memory = runtime_->may_read_neighbours(),
        .oversubscribed = runtime_->is_oversubscribed(),
        .limits = runtime_->table().shared});
  } catch (const Error& error) {
    runtime_->log().warn("a group of {} ranks does without shared memory: {}", facts_.size, error.what());
    return nullptr;
  }
}

bool GroupCore::share_memory(Duration timeout) {
  if (!runtime_->may_share_memory() || !any_neighbours(facts_.node_of, facts_.size)) return false;
  const std::vector<int> ranks = members_of_host();
  const std::shared_ptr<CircleCarrier> circle = take_seat(ranks);
  const std::uint64_t crowded_here = runtime_->is_oversubscribed() ? shares_its_core : 0;
  const std::array<std::uint64_t, 1> seat{circle ? circle->seat_offset() | crowded_here : no_seat};
  std::vector<std::uint64_t> seats(static_cast<std::size_t>(facts_.size));
  Group(shared_from_this()).all_gather(seat, seats, {.timeout = timeout});

  std::vector<std::uint64_t> offsets;
  bool crowded = false;
  for (const int rank : ranks) {
    const std::uint64_t told = seats[static_cast<std::size_t>(rank)];
    crowded = crowded || (told & shares_its_core) != 0;
    offsets.push_back(told & ~shares_its_core);
  }
  if (circle == nullptr || std::ranges::count(offsets, no_seat) > 0) return true;
  circle->connect(offsets, crowded);
  const auto guard = runtime_->lock();
  circle_ = circle;
  quick_ = static_cast<int>(ranks.size()) == facts_.size;
  backend_->use(quick_ ? Carriers{.whole = circle, .neighbours = {}} : Carriers{.whole = {}, .neighbours = circle});
  return true;
}

}  // namespace tutti
