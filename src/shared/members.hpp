// members.hpp: for the tests: all members of a circle in one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "shared/circle.hpp"
#include "shared/plain_commons.hpp"

namespace tutti::shared {

class Members {
 public:
  enum class Arrays { elsewhere, in_common, readable };  // what peers can reach of each other's arrays

  Members(int size, const SharedLimits& limits, Arrays arrays = Arrays::elsewhere) {
    std::vector<std::uint64_t> offsets;
    for (int rank = 0; rank < size; ++rank) {
      commons_.push_back(std::make_unique<PlainCommons>());
      commons_.back()->all_in_common = arrays == Arrays::in_common;
      circles_.push_back(std::make_unique<Circle>(Circle::Parts{.commons = commons_.back().get(),
                                                                .rank = rank,
                                                                .size = size,
                                                                .cross_memory = arrays == Arrays::readable,
                                                                .limits = limits}));
      offsets.push_back(circles_.back()->seat_offset());
    }
    for (auto& circle : circles_) circle->connect(offsets);
  }
  [[nodiscard]] int size() const { return static_cast<int>(circles_.size()); }
  Circle& operator[](int rank) { return *circles_[static_cast<std::size_t>(rank)]; }
  PlainCommons& commons(int rank) { return *commons_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<PlainCommons>> commons_;
  std::vector<std::unique_ptr<Circle>> circles_;
};

/// Polls bodies in random order until all are done. Fails if they do not get there.
inline void poll_all(const std::vector<Body*>& bodies, Random& random) {
  std::vector<Body*> open(bodies);
  for (int tries = 0; !open.empty(); ++tries) {
    ASSERT_LT(tries, 200'000) << open.size() << " of " << bodies.size() << " bodies stand still: " << open[0]->how();
    const std::size_t i = random.below(open.size());
    if (!open[i]->poll()) continue;
    open[i] = open.back();
    open.pop_back();
  }
}

}  // namespace tutti::shared
