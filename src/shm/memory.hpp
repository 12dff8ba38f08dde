// memory.hpp: blocks of an arena for users, which are not recycled while a peer may still touch them.
// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary. A block is *offered* when a call tells its address to peers; the *ledger* of that call's circle says who is
// done with it. A block whose last owner is gone goes into *quarantine* and leaves it when every peer it was offered to
// is done or has ended. A stopped process is not done and has not ended: when it wakes up, it may go on writing.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "shm/arena.hpp"

namespace tutti::shm {

/// Who is done with what it was offered. One for each circle of ranks that number their calls together.
class Ledger {
 public:
  virtual ~Ledger() = default;
  /// The ranks in the world that get to know what is offered here, without this one.
  [[nodiscard]] virtual std::span<const int> peers() const = 0;
  /// Whether that peer will never again touch what was offered up to `seq`. Reads with acquire order: what the peer
  /// wrote before it was done comes before whatever is done with the memory afterwards.
  [[nodiscard]] virtual bool is_done(int world_rank, std::uint64_t seq) const = 0;
};

class Memory : public std::enable_shared_from_this<Memory> {
 public:
  static std::shared_ptr<Memory> of(std::shared_ptr<Arena> arena);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] Arena& arena() const { return *arena_; }

  /// A block, with the arena, for as long as somebody holds it. Throws OutOfMemory, which also names the ranks for
  /// which other blocks wait in quarantine.
  [[nodiscard]] std::shared_ptr<std::byte> take(std::size_t bytes, std::size_t alignment = 128);

  /// Before peers learn of the address: they may touch the block that contains `data` until they are done with `seq`.
  /// Sequence numbers of one ledger only grow. False: the address is in no block from take().
  bool expose(const void* data, const std::shared_ptr<const Ledger>& ledger, std::uint64_t seq);

  /// That rank's process has ended: it is certain, not only silent.
  void ended(int world_rank);

  /// Frees what has served its quarantine. take() does it by itself.
  void collect();
  [[nodiscard]] std::uint64_t quarantined_bytes() const;

 private:
  struct Exposure {
    std::shared_ptr<const Ledger> ledger;
    std::uint64_t seq = 0;
  };
  struct Block {
    std::size_t bytes = 0;
    std::vector<Exposure> exposures{};
  };
  using Blocks = std::map<std::byte*, Block>;

  explicit Memory(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
  void give_back(std::byte* block);
  void collect(std::vector<Exposure>& over);
  void take_out_done(Block& block, std::vector<Exposure>& over) const;
  [[nodiscard]] bool is_awaited(int world_rank, const Exposure& expose) const;
  [[nodiscard]] bool is_awaited(const Exposure& expose) const;
  [[nodiscard]] std::string who_is_awaited() const;

  std::shared_ptr<Arena> arena_;
  mutable std::mutex mutex_;
  Blocks held_, quarantine_;
  std::set<int> ended_;
};

}  // namespace tutti::shm
