// closed_groups.hpp: groups whose handle is gone: their calls are remembered, because others may find only later that calls differed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "group/difference.hpp"

namespace tutti {

class GroupCore;

class ClosedGroups {
 public:
  /// `hosts`: of each rank in the world.
  ClosedGroups(control::Control& control, const std::vector<std::string>& hosts) : control_(control), hosts_(hosts) {}

  void keep(const GroupCore& group);
  [[nodiscard]] std::vector<control::Position> positions() const;
  /// A rank says in its goodbye how far it came in a group.
  void compare(int world_rank, const control::Position& theirs, TimePoint now);
  /// A peer asks whether the calls of a group differed, or has answered about that.
  [[nodiscard]] StallAnswer::State answer(int world_peer, const StallProbe& probe);
  void take_answer(int world_peer, const StallAnswer& answer);
  /// Whether a peer may still name a call that differed; asks it again if it is time to.
  bool pursue(TimePoint now);
  /// The members agreed that a group broke. False: it is none of these.
  bool take_abort(std::uint64_t group, const control::Cause& cause);

  /// What was found wrong too late for any call to raise it. The first of them counts.
  void note_late(const GroupFacts& facts, const control::Cause& cause);
  void note_late(std::exception_ptr error) {
    if (!late_error_) late_error_ = std::move(error);
  }
  void note_all_late();
  [[nodiscard]] bool has_late_error() const { return late_error_ != nullptr; }
  [[nodiscard]] std::exception_ptr take_late_error() { return std::exchange(late_error_, nullptr); }

 private:
  struct Closed {
    GroupFacts facts{};
    CallHistory calls{};
  };
  control::Control& control_;
  const std::vector<std::string>& hosts_;
  std::map<std::uint64_t, Closed> groups_;  // by id; the latest
  std::deque<std::uint64_t> order_;
  std::map<std::uint64_t, OpenDifference> open_;  // differences in these groups: known here, and not named yet
  std::exception_ptr late_error_;
};

}  // namespace tutti
