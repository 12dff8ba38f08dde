// neighbourhood.cpp: which ranks share memory: found out together at init, so that all choose alike.
// SPDX-License-Identifier: Apache-2.0
#include "group/neighbourhood.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "transport/host.hpp"

namespace tutti {
namespace {

constexpr char no_memory = '!';
constexpr std::string_view reads_mark = " reads";

/// What this rank found out of those it should share memory with; empty if all is well.
std::string trouble_with_neighbours(const shm::Neighbours& neighbours, const Meeting& meeting, int node) {
  for (std::size_t rank = 0; rank < meeting.node_of.size(); ++rank) {
    if (meeting.node_of[rank] != node || neighbours.reaches(static_cast<int>(rank))) continue;
    return fmt::format("rank {} cannot map the memory of rank {}: {}", neighbours.rank(), rank,
                       neighbours.why_not(static_cast<int>(rank)));
  }
  return {};
}

std::string own_trouble(const OwnMemory& own, const Meeting& meeting, int node,
                        std::shared_ptr<shm::Neighbours>& neighbours) {
  std::vector<shm::ArenaAddress> addresses;
  for (std::size_t rank = 0; rank < meeting.memory_notes.size(); ++rank) {
    const std::string& note = meeting.memory_notes[rank];
    if (note.starts_with(no_memory)) {
      if (meeting.node_of[rank] == node) return fmt::format("rank {} has none: {}", rank, note.substr(1));
      addresses.emplace_back();
    } else {
      addresses.push_back(shm::ArenaAddress::from_text(note));
    }
  }
  neighbours = std::make_shared<shm::Neighbours>(own.arena, meeting.connector.place().rank, addresses);
  return trouble_with_neighbours(*neighbours, meeting, node);
}

/// Rings are made when they are first used, in the middle of a call: what they need is set aside now, while all ranks can
/// still agree to do without.
void reserve_rings(shm::Arena& arena, const Meeting& meeting, int neighbours) {
  constexpr std::uint64_t permits_bytes = 64 << 10;  // messages under way need some, too
  const std::uint64_t bytes = static_cast<std::uint64_t>(neighbours) * meeting.ring_bytes + permits_bytes;
  try {
    arena.reserve(bytes);
  } catch (const shm::OutOfMemory& error) {
    throw shm::OutOfMemory(fmt::format("rank {} has no room for its messages to {} neighbours: {}",
                                       meeting.connector.place().rank, neighbours, error.what()));
  }
}

/// Where this rank's board is, and whether it may read its neighbours' memory.
std::string board_note(const OwnMemory& own, const shm::Neighbours& neighbours, const Meeting& meeting) {
  bool reads = true;
  int near = 0;
  for (std::size_t rank = 0; rank < meeting.node_of.size(); ++rank) {
    const int other = static_cast<int>(rank);
    if (!neighbours.reaches(other)) continue;
    reads = reads && neighbours.may_read_memory_of(other);
    if (other != neighbours.rank()) ++near;
  }
  try {
    const std::uint64_t board = transport::lay_out_board(*own.arena, static_cast<int>(meeting.node_of.size()));
    reserve_rings(*own.arena, meeting, near);
    return fmt::format("{}{}", board, reads ? reads_mark : "");
  } catch (const Error& error) {
    return no_memory + std::string(error.what());
  }
}

/// The lowest rank of the host says so for all.
Neighbourhood without(const Meeting& meeting, const std::string& why) {
  const int rank = meeting.connector.place().rank;
  const int node = meeting.node_of[static_cast<std::size_t>(rank)];
  if (std::ranges::find(meeting.node_of, node) - meeting.node_of.begin() == rank) {
    meeting.log.warn("the {} ranks of this host do not share memory, messages between them go over TCP: {}",
                     std::ranges::count(meeting.node_of, node), why);
  }
  return {};
}

}  // namespace

OwnMemory make_memory(std::string_view backend, const Place& place, const Environment& environment) {
  if (backend == "native") return {.arena = nullptr, .why_not = "the backend native was asked for"};
  if (backend == "auto" && place.local_size == 1) return {.arena = nullptr, .why_not = "it is alone on its host"};
  try {
    shm::ArenaOptions options = shm::ArenaOptions::from(environment);
    // Ranks that the launcher calls different nodes are that, whatever machine they run on.
    options.host_id = fmt::format("{}/{}", shm::host_id_of_machine(environment), place.node_rank);
    options.ranks = place.local_size;
    return {.arena = std::make_shared<shm::Arena>(options), .why_not = {}};
  } catch (const Error& error) {
    return {.arena = nullptr, .why_not = error.what()};
  }
}

std::string to_note(const OwnMemory& memory) {
  return memory.arena ? memory.arena->address().to_text() : no_memory + memory.why_not;
}

Neighbourhood meet_neighbours(const OwnMemory& own, const Meeting& meeting) {
  const int rank = meeting.connector.place().rank;
  const int node = meeting.node_of[static_cast<std::size_t>(rank)];
  const auto count_on = [&](int which) { return std::ranges::count(meeting.node_of, which); };
  std::shared_ptr<shm::Neighbours> neighbours;
  const std::string trouble = count_on(node) == 1 ? "" : own_trouble(own, meeting, node, neighbours);
  const std::string mine = neighbours && trouble.empty() ? board_note(own, *neighbours, meeting) : no_memory + trouble;

  const std::vector<std::string> answers = meeting.connector.exchange(mine, meeting.deadline);
  Neighbourhood result{.neighbours = neighbours, .boards = {}, .cross_memory = neighbours != nullptr};
  for (std::size_t other = 0; other < answers.size(); ++other) {
    const bool shares = !answers[other].starts_with(no_memory);
    const bool is_near = meeting.node_of[other] == node;
    result.boards.push_back(shares && is_near ? std::stoull(answers[other]) : transport::no_board);
    if (is_near && !answers[other].ends_with(reads_mark)) result.cross_memory = false;
    if (shares || answers[other].size() == 1) continue;
    const std::string why = answers[other].substr(1);
    if (meeting.backend == "shm") {
      throw Unsupported(
          fmt::format("backend shm: memory cannot be shared: {}; use the backend auto or native to go over "
                      "TCP instead, and see `tutti doctor`",
                      why));
    }
    if (is_near) return without(meeting, why);
  }
  if (count_on(node) == 1) result.neighbours = nullptr;
  return result;
}

}  // namespace tutti
