// local_peers.hpp: the arenas of the other ranks on this host, mapped into this process.
// SPDX-License-Identifier: Apache-2.0
//
// A peer's arena is opened through /proc/PID/fd/N (same user, same process namespace); its token proves that it is the
// right one. Whoever cannot be reached is told with the reason, so that all ranks can agree to do without. A mapping
// stays until the LocalPeers are destroyed, also when its owner is gone.
//
// Thread rule: everything is const after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shm/arena.hpp"

namespace tutti::shm {

class LocalPeers {
 public:
  /// `addresses[r]` is world rank r's; those with another host id are not looked at. Their owners must live until all
  /// ranks have constructed theirs.
  LocalPeers(std::shared_ptr<Arena> own, int rank, const std::vector<ArenaAddress>& addresses);
  ~LocalPeers();
  LocalPeers(const LocalPeers&) = delete;
  LocalPeers& operator=(const LocalPeers&) = delete;

  [[nodiscard]] Arena& arena() const { return *own_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool reaches(int world_rank) const { return peer(world_rank).base != nullptr; }
  /// Why that rank is not reached, as the end of a sentence; empty where it is.
  [[nodiscard]] const std::string& why_not(int world_rank) const { return peer(world_rank).reason; }
  /// An address in that rank's arena (this rank's own included). The offset came from it and is checked against its size.
  [[nodiscard]] std::byte* at(int world_rank, std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] ArenaHeader& header(int world_rank) const;
  [[nodiscard]] std::int64_t process_of(int world_rank) const { return peer(world_rank).process; }
  /// Whether process_vm_readv from that rank's memory is permitted (tried once, on its arena's header).
  [[nodiscard]] bool may_read_memory_of(int world_rank) const { return peer(world_rank).cross_memory; }

 private:
  struct Peer {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::int64_t process = 0;
    bool cross_memory = false;
    std::string reason{};
    std::shared_ptr<Mapping> mapping{};
  };
  [[nodiscard]] const Peer& peer(int world_rank) const { return at_[static_cast<std::size_t>(world_rank)]; }
  [[nodiscard]] Peer reach(const ArenaAddress& address) const;

  std::shared_ptr<Arena> own_;
  int rank_ = 0;
  std::vector<Peer> at_;
};

}  // namespace tutti::shm
