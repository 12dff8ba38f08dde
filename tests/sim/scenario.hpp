// scenario.hpp: everything one seed decides: a cluster, its groups, what every rank calls, and what goes wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract_case.hpp"
#include "verify/simulated_cluster.hpp"

namespace tutti::sim {

// A message between two members; the others do nothing.
struct Message {
  int from = 0, to = 0;  // ranks in the group
  std::uint32_t tag = 0;
  bool from_anyone = false;  // the receiver does not say whom it expects; then no other message has this tag
  DType dtype = DType::uint8;
  std::int64_t count = 0;
  contract::Memory memory = contract::Memory::contiguous;
  std::uint64_t seed = 0;
};

struct ScenarioCall {
  contract::Case collective{};
  std::optional<Message> message{};  // instead

  [[nodiscard]] bool concerns(int rank_in_group) const {
    return !message || message->from == rank_in_group || message->to == rank_in_group;
  }
};
std::string describe(const ScenarioCall& call);

// A group and the calls that all its members make, in this order.
struct GroupScript {
  std::vector<int> members;  // ranks in the world, in the group's order; the first script is the world's
  std::vector<ScenarioCall> calls;
  int window = 1;  // so many calls a rank has under way at once
  Duration timeout{};
  Duration thinking_max{};  // a rank may take so long before a call
  std::uint64_t seed = 0;

  [[nodiscard]] int rank_of(int world_rank) const;
  // What a member does before it makes a call.
  [[nodiscard]] Duration thinking_time(std::size_t call, int world_rank) const;
  // The number of a collective among the group's collectives, as ranks count them.
  [[nodiscard]] std::uint64_t sequence_of(std::size_t call) const;
};

// A rank that does not keep to the script.
struct Deviation {
  enum class Kind : std::uint8_t {
    mismatch,  // it makes another call than the others
    refusal,   // it passes an argument that is rejected on entry
    absence,   // it makes neither this call nor a later one on the group, but lives on
    abort,     // it aborts the group before the call
    leave,     // it leaves the job before the call, whatever it has under way
  };
  Kind kind = Kind::mismatch;
  std::size_t group = 0, call = 0;
  int rank = 0;                           // in the world
  std::optional<ScenarioCall> instead{};  // mismatch
};
inline constexpr int deviation_kind_count = 5;
std::string describe(const Deviation& deviation);

struct Scenario {
  std::uint64_t seed = 0;
  messages::SimulationOptions cluster{};
  std::vector<GroupScript> groups{};
  std::vector<messages::Fault> faults{};
  std::vector<Deviation> deviations{};
  bool leave_when_done = false;  // ranks say goodbye as soon as their own calls have ended

  [[nodiscard]] bool is_faultless() const { return faults.empty() && deviations.empty(); }
};

Scenario draw_scenario(std::uint64_t seed);

// The row of the summary: "none", "kill_rank", "mismatch", "several", …
std::string_view kind_of(const Scenario& scenario);
// All of it, as text.
std::string describe(const Scenario& scenario);

}  // namespace tutti::sim
