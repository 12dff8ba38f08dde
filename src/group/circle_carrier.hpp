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
  /// `members`: ranks in the world, this one at `rank`. Throws Error when memory runs out.
  CircleCarrier(std::shared_ptr<shm::Neighbours> neighbours, std::vector<int> members, int rank,
                const shared::SharedLimits& limits)
      : neighbours_(std::move(neighbours)),
        members_(std::move(members)),
        commons_(*neighbours_, members_),
        circle_({.commons = &commons_, .rank = rank, .size = static_cast<int>(members_.size()), .limits = limits}) {}

  [[nodiscard]] std::uint64_t seat_offset() const { return circle_.seat_offset(); }
  void connect(const std::vector<std::uint64_t>& offsets) { circle_.connect(offsets); }
  [[nodiscard]] bool is_vacant() { return circle_.is_vacant(); }

  [[nodiscard]] std::span<const int> members() const override { return members_; }
  Body& start(const BodyStart& start) override { return circle_.start(start); }
  void release(Body& body) override { circle_.release(body); }

 private:
  std::shared_ptr<shm::Neighbours> neighbours_;
  std::vector<int> members_;
  shared::ArenaCommons commons_;
  shared::Circle circle_;
};

}  // namespace tutti
