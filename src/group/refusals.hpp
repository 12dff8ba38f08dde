// refusals.hpp: calls that a member of a group does not take part in, because it found them wrong before anything was sent.
// SPDX-License-Identifier: Apache-2.0
//
// Such a call takes its number on every rank: the others raise Aborted for it, and the group stays in step and usable.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "group/running_operations.hpp"

namespace tutti {

class Refusals {
 public:
  Refusals(GroupState& state, RunningOperations& running) : state_(state), running_(running) {}

  /// This rank takes no part in the group's next call.
  void refuse(const std::string& text);
  /// Another rank takes no part in a call, which may have been made here or not yet.
  void take(std::uint64_t sequence, int world_rank, std::string_view text);
  /// A call was made here: ends it if another rank has refused it.
  void apply_to(const Operation& operation);
  /// Drops what arrived for refused calls, once no earlier call runs: the transport forgets up to a number.
  void forget_arrived();
  [[nodiscard]] bool empty() const { return early_.empty(); }

 private:
  struct Refusal {
    int world_rank;
    std::string text;
  };
  GroupState& state_;
  RunningOperations& running_;
  std::map<std::uint64_t, Refusal> early_;  // by number: of calls not made here yet
  std::optional<std::uint64_t> latest_;     // call that somebody refused; messages for it may lie unread
};

}  // namespace tutti
