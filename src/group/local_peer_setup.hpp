// local_peer_setup.hpp: which ranks share memory: found out together at init, so that all choose alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tutti/connector.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "shm/local_peers.hpp"

namespace tutti {

/// What a rank brings to the meeting: its memory, or why it has none.
struct OwnMemory {
  std::shared_ptr<shm::Arena> arena{};
  std::string why_not{};
};

/// `backend` as in InitOptions. "native" wants none.
OwnMemory make_memory(std::string_view backend, const Place& place, const Environment& environment);

/// A rank's memory as it stands in its note: the arena's address, or "!" and why there is none.
std::string to_record(const OwnMemory& memory);

/// Maps the memory of the ranks of this node, and has all ranks tell how that went. A node's ranks share memory if each of
/// them reaches all of the others and has memory for its messages to them; otherwise the lowest of them says why not, and they do without. With the backend "shm"
/// that is an error, the same on all ranks of all nodes.
struct LocalPeerQuery {
  Connector& connector;
  std::string backend;
  const std::vector<int>& node_of;
  const std::vector<std::string>& memory_records;  // of each rank
  std::uint64_t ring_bytes = 0;                    // of shared memory that a rank will need to send to one local peer
  const Log& log;
  TimePoint deadline;
};
struct LocalPeerSetup {
  std::shared_ptr<shm::LocalPeers> local_peers{};  // null: none
  std::vector<std::uint64_t> control_blocks{};     // of each rank, for the transport; no_board where there is none
  bool cross_memory = false;                       // all ranks of the host may read each other's memory
};
LocalPeerSetup find_local_peers(const OwnMemory& own, const LocalPeerQuery& query);

}  // namespace tutti
