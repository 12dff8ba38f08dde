// arena_segment.hpp: the arenas of one host's ranks as the memory that a group has in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "intranode/shared_segment.hpp"
#include "shm/doorbell.hpp"
#include "shm/local_peers.hpp"
#include "shm/memory.hpp"

namespace tutti::intranode {

class ArenaSegment final : public SharedSegment {
 public:
  struct Parts {
    std::shared_ptr<shm::LocalPeers> local_peers{};  // reaches all members
    std::shared_ptr<shm::Memory> memory{};           // of the own arena; without it no array is offered
    std::vector<int> members{};                      // rank in the world of the group's member i
  };
  explicit ArenaSegment(Parts parts);
  ~ArenaSegment() override;
  ArenaSegment(const ArenaSegment&) = delete;
  ArenaSegment& operator=(const ArenaSegment&) = delete;

  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* block) override;
  [[nodiscard]] std::uint64_t offset_of(const std::byte* own) const override;
  [[nodiscard]] std::byte* at(int index, std::uint64_t offset, std::size_t bytes) const override;
  std::optional<std::uint64_t> expose(const std::byte* data, std::size_t bytes, std::uint64_t seq) override;
  void read(int index, std::uint64_t address, std::byte* to, std::size_t bytes) override;
  void connected(std::vector<const std::atomic<std::uint64_t>*> consumed) override;
  void departing() override;
  void notify_all_members() override {
    shm::fence_before_notify();
    notify_all_after_fence();
  }
  void notify_all_after_fence() {
    for (shm::ArenaHeader* header : headers_) shm::notify_after_fence(*header);
  }

 private:
  class ConsumedLedger;

  Parts parts_;
  std::vector<shm::ArenaHeader*> headers_;  // of the others
  std::shared_ptr<ConsumedLedger> ledger_;  // outlives this, as long as offered memory is in quarantine
};

}  // namespace tutti::intranode
