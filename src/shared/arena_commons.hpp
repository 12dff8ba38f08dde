// arena_commons.hpp: the arenas of one host's ranks as the memory that a circle has in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "shared/commons.hpp"
#include "shm/bell.hpp"
#include "shm/memory.hpp"
#include "shm/neighbours.hpp"

namespace tutti::shared {

class ArenaCommons final : public Commons {
 public:
  struct Parts {
    std::shared_ptr<shm::Neighbours> neighbours{};  // reaches all members
    std::shared_ptr<shm::Memory> memory{};          // of the own arena; without it no array is offered
    std::vector<int> members{};                     // rank in the world of the circle's member i
  };
  explicit ArenaCommons(Parts parts);
  ~ArenaCommons() override;
  ArenaCommons(const ArenaCommons&) = delete;
  ArenaCommons& operator=(const ArenaCommons&) = delete;

  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* block) override;
  [[nodiscard]] std::uint64_t offset_of(const std::byte* own) const override;
  [[nodiscard]] std::byte* at(int index, std::uint64_t offset, std::size_t bytes) const override;
  std::optional<std::uint64_t> offer(const std::byte* data, std::size_t bytes, std::uint64_t stamp) override;
  void read(int index, std::uint64_t address, std::byte* to, std::size_t bytes) override;
  void connected(std::vector<const std::atomic<std::uint64_t>*> taken) override;
  void departing() override;
  void ring_all() override {
    shm::fence_before_ring();
    ring_all_after_fence();
  }
  void ring_all_after_fence() {
    for (shm::ArenaHeader* header : headers_) shm::ring_after_fence(*header);
  }

 private:
  class TakenLedger;

  Parts parts_;
  std::vector<shm::ArenaHeader*> headers_;  // of the others
  std::shared_ptr<TakenLedger> ledger_;     // outlives this, as long as offered memory is in quarantine
};

}  // namespace tutti::shared
