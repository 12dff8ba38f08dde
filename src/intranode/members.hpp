// members.hpp: for the tests: all members of a group in one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "intranode/heap_segment.hpp"
#include "intranode/intranode_group.hpp"

namespace tutti::intranode {

class Members {
 public:
  enum class Arrays { elsewhere, in_common, readable };  // what peers can reach of each other's arrays

  Members(int size, const SharedLimits& limits, Arrays arrays = Arrays::elsewhere) {
    std::vector<std::uint64_t> offsets;
    for (int rank = 0; rank < size; ++rank) {
      segment_.push_back(std::make_unique<HeapSegment>());
      segment_.back()->all_in_common = arrays == Arrays::in_common;
      groups_.push_back(
          std::make_unique<IntranodeGroup>(IntranodeGroup::Parts{.segment = segment_.back().get(),
                                                                 .rank = rank,
                                                                 .size = size,
                                                                 .cross_memory = arrays == Arrays::readable,
                                                                 .limits = limits}));
      offsets.push_back(groups_.back()->control_block_offset());
    }
    for (auto& group : groups_) group->connect(offsets);
  }
  [[nodiscard]] int size() const { return static_cast<int>(groups_.size()); }
  IntranodeGroup& operator[](int rank) { return *groups_[static_cast<std::size_t>(rank)]; }
  HeapSegment& segment(int rank) { return *segment_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<HeapSegment>> segment_;
  std::vector<std::unique_ptr<IntranodeGroup>> groups_;
};

/// Polls executions in random order until all are done. Fails if they do not get there.
inline void poll_all(const std::vector<Execution*>& executions, Random& random) {
  std::vector<Execution*> open(executions);
  for (int tries = 0; !open.empty(); ++tries) {
    ASSERT_LT(tries, 200'000) << open.size() << " of " << executions.size()
                              << " bodies stand still: " << open[0]->how();
    const std::size_t i = random.below(open.size());
    if (!open[i]->poll()) continue;
    open[i] = open.back();
    open.pop_back();
  }
}

}  // namespace tutti::intranode
