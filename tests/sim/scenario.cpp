// scenario.cpp: scenarios in words, and what follows from them.
// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/hash.hpp"

namespace tutti::sim {

int GroupScript::rank_of(int world_rank) const {
  const auto found = std::ranges::find(members, world_rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

Duration GroupScript::thinking_time(std::size_t call, int world_rank) const {
  const std::uint64_t lot = Hash(seed).add(call).add(static_cast<std::uint64_t>(world_rank)).value();
  if (thinking_max == Duration(0) || lot % 3 != 0) return Duration(0);
  return Duration(static_cast<std::int64_t>(lot / 3 % static_cast<std::uint64_t>(thinking_max.count())));
}

std::uint64_t GroupScript::sequence_of(std::size_t call) const {
  return static_cast<std::uint64_t>(std::count_if(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(call),
                                                  [](const ScenarioCall& each) { return !each.message; }));
}

std::string describe(const ScenarioCall& call) {
  if (!call.message) return contract::describe(call.collective);
  const Message& m = *call.message;
  return fmt::format("message {} × {} from rank {} to rank {} with tag {}{}", name_of(m.dtype), m.count, m.from, m.to,
                     m.tag, m.from_anyone ? ", expected from anyone" : "");
}

std::string describe(const Deviation& deviation) {
  constexpr std::string_view what[] = {"makes another call than the others", "passes a bad argument to",
                                       "makes no more calls from", "aborts the group before", "leaves the job before"};
  std::string text = fmt::format("rank {} {} call {} of group {}", deviation.rank,
                                 what[static_cast<int>(deviation.kind)], deviation.call, deviation.group);
  if (deviation.instead) text += fmt::format(": {}", describe(*deviation.instead));
  return text;
}

std::string_view kind_of(const Scenario& scenario) {
  constexpr std::string_view faults[] = {"stall_link", "cut_link",  "cut_one_way", "slow_rank",
                                         "stall_rank", "kill_rank", "delay_rank"};
  constexpr std::string_view deviations[] = {"mismatch", "refusal", "absence", "abort", "leave"};
  if (scenario.is_faultless()) return "none";
  if (scenario.faults.size() + scenario.deviations.size() > 1) return "several";
  return scenario.faults.empty() ? deviations[static_cast<int>(scenario.deviations[0].kind)]
                                 : faults[static_cast<int>(scenario.faults[0].kind)];
}

std::string describe(const Scenario& scenario) {
  const messages::SimulationOptions& c = scenario.cluster;
  const auto microseconds = [](Duration d) { return static_cast<double>(d.count()) / 1e3; };
  std::string text = fmt::format(
      "seed {}: {} ranks, {} per node, {:.0f} µs and {:.0e} B/s between nodes, jitter {}, eager to {} B, credit {} B, "
      "segments of {} "
      "B{}\n",
      scenario.seed, c.size, c.ranks_per_node, microseconds(c.between_nodes.latency), c.between_nodes.bytes_per_second,
      c.jitter, c.eager_bytes, c.credit_bytes, c.segment_bytes,
      scenario.leave_when_done ? "; ranks leave when they are done" : "");
  for (std::size_t g = 0; g < scenario.groups.size(); ++g) {
    const GroupScript& script = scenario.groups[g];
    text += fmt::format("  group {}: world ranks [{}], {} at once, timeout {} ms\n", g, fmt::join(script.members, " "),
                        script.window, script.timeout / std::chrono::milliseconds(1));
    for (std::size_t i = 0; i < script.calls.size(); ++i)
      text += fmt::format("    {:2} {}\n", i, describe(script.calls[i]));
  }
  for (const auto& fault : scenario.faults) text += fmt::format("  fault {}\n", messages::describe(fault));
  for (const auto& deviation : scenario.deviations) text += fmt::format("  {}\n", describe(deviation));
  return text;
}

}  // namespace tutti::sim
