// circle_carrier.hpp: a circle of neighbours as the carrier of a group's collectives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/body.hpp"
#include "shared/arena_commons.hpp"
#include "shared/circle.hpp"

namespace tutti {

class CircleCarrier final : public Carrier {
 public:
  struct Parts {
    shared::ArenaCommons::Parts commons{};  // whose members are ranks in the world
    int rank = 0;                           // of this rank among them
    bool cross_memory = false;
    bool oversubscribed = false;
    SharedLimits limits{};
  };
  /// Throws Error when memory runs out.
  explicit CircleCarrier(const Parts& parts)
      : members_(parts.commons.members),
        commons_(parts.commons),
        circle_({.commons = &commons_,
                 .rank = parts.rank,
                 .size = static_cast<int>(members_.size()),
                 .cross_memory = parts.cross_memory,
                 .oversubscribed = parts.oversubscribed,
                 .limits = parts.limits}) {}

  [[nodiscard]] std::uint64_t seat_offset() const { return circle_.seat_offset(); }
  void connect(const std::vector<std::uint64_t>& offsets, bool crowded) { circle_.connect(offsets, crowded); }
  void depart() { circle_.depart(); }
  [[nodiscard]] bool is_vacant() const { return circle_.is_vacant(); }

  [[nodiscard]] std::span<const int> members() const override { return members_; }
  Body& start(const BodyStart& start) override { return circle_.start(start); }
  void release(Body& body) override { circle_.release(body); }
  bool run_again(Body& ended, const Signature& numbered, const std::byte* input, std::byte* output) {
    return circle_.run_again(ended, numbered, input, output);
  }
  /// After run_again() and a full fence.
  void ring_after_fence() { commons_.ring_all_after_fence(); }

 private:
  std::vector<int> members_;
  shared::ArenaCommons commons_;
  shared::Circle circle_;
};

}  // namespace tutti
