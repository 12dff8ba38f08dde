// intranode_executor.hpp: an intranode group of local peers as the executor of a group's collectives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/executor.hpp"
#include "intranode/arena_segment.hpp"
#include "intranode/intranode_group.hpp"

namespace tutti {

class IntranodeExecutor final : public Executor {
 public:
  struct Parts {
    intranode::ArenaSegment::Parts segment{};  // whose members are ranks in the world
    int rank = 0;                              // of this rank among them
    bool cross_memory = false;
    bool oversubscribed = false;
    SharedLimits limits{};
    intranode::Tracing tracing{};
  };
  /// Throws Error when memory runs out.
  explicit IntranodeExecutor(const Parts& parts)
      : members_(parts.segment.members),
        segment_(parts.segment),
        intranode_({.segment = &segment_,
                    .rank = parts.rank,
                    .size = static_cast<int>(members_.size()),
                    .cross_memory = parts.cross_memory,
                    .oversubscribed = parts.oversubscribed,
                    .limits = parts.limits,
                    .tracing = parts.tracing}) {}

  [[nodiscard]] std::uint64_t control_block_offset() const { return intranode_.control_block_offset(); }
  void connect(const std::vector<std::uint64_t>& offsets, bool oversubscribed_anywhere) {
    intranode_.connect(offsets, oversubscribed_anywhere);
  }
  void depart() { intranode_.depart(); }
  [[nodiscard]] bool is_vacant() const { return intranode_.is_vacant(); }

  [[nodiscard]] std::span<const int> members() const override { return members_; }
  std::unique_ptr<PreparedCall> prepare(const ExecutionSpec& what) override { return intranode_.prepare(what); }
  [[nodiscard]] std::string_view medium() const override { return "shared memory"; }
  [[nodiscard]] bool compares_counts() const override { return false; }
  [[nodiscard]] bool widens_small_floats() const override { return true; }

 private:
  std::vector<int> members_;
  intranode::ArenaSegment segment_;
  intranode::IntranodeGroup intranode_;
};

}  // namespace tutti
