// arena_commons.hpp: the arenas of one host's ranks as the memory that a circle has in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "shared/commons.hpp"
#include "shm/bell.hpp"
#include "shm/neighbours.hpp"

namespace tutti::shared {

class ArenaCommons final : public Commons {
 public:
  /// `members[i]` is the rank in the world of the circle's member i; `neighbours` reaches them all and outlives this.
  ArenaCommons(shm::Neighbours& neighbours, std::vector<int> members)
      : neighbours_(neighbours), members_(std::move(members)) {
    for (const int member : members_) {
      if (member != neighbours_.rank()) headers_.push_back(&neighbours_.header(member));
    }
  }

  std::byte* allocate(std::size_t bytes) override { return neighbours_.arena().allocate(bytes, 4096); }
  void free(std::byte* block) override { neighbours_.arena().free(block); }
  [[nodiscard]] std::uint64_t offset_of(const std::byte* own) const override {
    return neighbours_.arena().offset_of(own);
  }
  [[nodiscard]] std::byte* at(int index, std::uint64_t offset, std::size_t bytes) const override {
    return neighbours_.at(members_[static_cast<std::size_t>(index)], offset, bytes);
  }
  void ring_all() override {
    shm::fence_before_ring();
    for (shm::ArenaHeader* header : headers_) shm::ring_after_fence(*header);
  }

 private:
  shm::Neighbours& neighbours_;
  std::vector<int> members_;
  std::vector<shm::ArenaHeader*> headers_;  // of the others
};

}  // namespace tutti::shared
