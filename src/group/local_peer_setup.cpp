// local_peer_setup.cpp: which ranks share memory: found out together at init, so that all choose alike.
// SPDX-License-Identifier: Apache-2.0
#include "group/local_peer_setup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "link/ring_control_block.hpp"

namespace tutti {
namespace {

constexpr char no_memory = '!';
constexpr std::string_view reads_mark = " reads";

/// What this rank found out of those it should share memory with; empty if all is well.
std::string trouble_with_local_peers(const shm::LocalPeers& local_peers, const LocalPeerQuery& query, int node) {
  for (std::size_t rank = 0; rank < query.node_of.size(); ++rank) {
    if (query.node_of[rank] != node || local_peers.reaches(static_cast<int>(rank))) continue;
    return fmt::format("rank {} cannot map the memory of rank {}: {}", local_peers.rank(), rank,
                       local_peers.why_not(static_cast<int>(rank)));
  }
  return {};
}

std::string own_trouble(const OwnMemory& own, const LocalPeerQuery& query, int node,
                        std::shared_ptr<shm::LocalPeers>& local_peers) {
  std::vector<shm::ArenaAddress> addresses;
  for (std::size_t rank = 0; rank < query.memory_records.size(); ++rank) {
    const std::string& record = query.memory_records[rank];
    if (record.starts_with(no_memory)) {
      if (query.node_of[rank] == node) return fmt::format("rank {} has none: {}", rank, record.substr(1));
      addresses.emplace_back();
    } else {
      addresses.push_back(shm::ArenaAddress::from_text(record));
    }
  }
  local_peers = std::make_shared<shm::LocalPeers>(own.arena, query.connector.place().rank, addresses);
  return trouble_with_local_peers(*local_peers, query, node);
}

/// Rings are made when they are first used, in the middle of a call: what they need is set aside now, while all ranks can
/// still agree to do without.
void reserve_rings(shm::Arena& arena, const LocalPeerQuery& query, int local_peers) {
  constexpr std::uint64_t remote_keys_bytes = 64 << 10;  // messages under way need some, too
  const std::uint64_t bytes = static_cast<std::uint64_t>(local_peers) * query.ring_bytes + remote_keys_bytes;
  try {
    arena.reserve(bytes);
  } catch (const shm::OutOfMemory& error) {
    throw shm::OutOfMemory(fmt::format("rank {} has no room for its messages to {} neighbours: {}",
                                       query.connector.place().rank, local_peers, error.what()));
  }
}

/// Where this rank's board is, and whether it may read its local peers' memory.
std::string control_block_record(const OwnMemory& own, const shm::LocalPeers& local_peers,
                                 const LocalPeerQuery& query) {
  bool reads = true;
  int near = 0;
  for (std::size_t rank = 0; rank < query.node_of.size(); ++rank) {
    const int other = static_cast<int>(rank);
    if (!local_peers.reaches(other)) continue;
    reads = reads && local_peers.may_read_memory_of(other);
    if (other != local_peers.rank()) ++near;
  }
  try {
    const std::uint64_t own_control_block =
        link::lay_out_control_block(*own.arena, static_cast<int>(query.node_of.size()));
    reserve_rings(*own.arena, query, near);
    return fmt::format("{}{}", own_control_block, reads ? reads_mark : "");
  } catch (const Error& error) {
    return no_memory + std::string(error.what());
  }
}

/// The lowest rank of the host says so for all.
LocalPeerSetup without(const LocalPeerQuery& query, const std::string& why) {
  const int rank = query.connector.place().rank;
  const int node = query.node_of[static_cast<std::size_t>(rank)];
  if (std::ranges::find(query.node_of, node) - query.node_of.begin() == rank) {
    query.log.warn("the {} ranks of this host do not share memory, messages between them go over TCP: {}",
                   std::ranges::count(query.node_of, node), why);
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

std::string to_record(const OwnMemory& memory) {
  return memory.arena ? memory.arena->address().to_text() : no_memory + memory.why_not;
}

LocalPeerSetup find_local_peers(const OwnMemory& own, const LocalPeerQuery& query) {
  const int rank = query.connector.place().rank;
  const int node = query.node_of[static_cast<std::size_t>(rank)];
  const auto count_on = [&](int which) { return std::ranges::count(query.node_of, which); };
  std::shared_ptr<shm::LocalPeers> local_peers;
  const std::string trouble = count_on(node) == 1 ? "" : own_trouble(own, query, node, local_peers);
  const std::string mine =
      local_peers && trouble.empty() ? control_block_record(own, *local_peers, query) : no_memory + trouble;

  const std::vector<std::string> answers = query.connector.exchange(mine, query.deadline);
  LocalPeerSetup result{.local_peers = local_peers, .control_blocks = {}, .cross_memory = local_peers != nullptr};
  for (std::size_t other = 0; other < answers.size(); ++other) {
    const bool shares = !answers[other].starts_with(no_memory);
    const bool is_near = query.node_of[other] == node;
    result.control_blocks.push_back(shares && is_near ? std::stoull(answers[other]) : link::no_control_block_offset);
    if (is_near && !answers[other].ends_with(reads_mark)) result.cross_memory = false;
    if (shares || answers[other].size() == 1) continue;
    const std::string why = answers[other].substr(1);
    if (query.backend == "shm") {
      throw Unsupported(
          fmt::format("backend shm: memory cannot be shared: {}; use the backend auto or native to go over "
                      "TCP instead, and see `tutti doctor`",
                      why));
    }
    if (is_near) return without(query, why);
  }
  if (count_on(node) == 1) result.local_peers = nullptr;
  query.log.info(
      "{}", result.local_peers == nullptr
                ? "no other rank on this host: nothing is shared"
                : fmt::format("{} ranks of this host share memory, messages between them go through rings in it; {}",
                              count_on(node),
                              result.cross_memory
                                  ? "large ones are read from the peer's memory"
                                  : "the ranks may not read each other's memory, so large ones are copied twice"));
  return result;
}

}  // namespace tutti
