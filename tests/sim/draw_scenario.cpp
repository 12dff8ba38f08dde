// draw_scenario.cpp: from a seed to a scenario.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/random.hpp"
#include "case_grid.hpp"
#include "scenario.hpp"

namespace tutti::sim {
namespace {

using namespace std::chrono_literals;
using messages::Fault;

constexpr Duration script_length = 40ms;  // roughly what the calls take; faults happen in this time

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

// Each order of magnitude is as likely as the others.
Duration draw_duration(Random& random, Duration shortest, Duration longest) {
  const double low = std::log(static_cast<double>(shortest.count())),
               high = std::log(static_cast<double>(longest.count()));
  return Duration(static_cast<std::int64_t>(std::exp(low + (high - low) * random.unit())));
}

messages::SimulationOptions draw_cluster(Random& random) {
  messages::SimulationOptions options;
  options.size = random.chance(0.5) ? static_cast<int>(random.between(2, 5)) : static_cast<int>(random.between(6, 16));
  options.seed = random.next();
  options.ranks_per_node = one_of(random, {1, options.size, options.size, 2, 3, 4});
  options.between_nodes.latency = draw_duration(random, 2us, 500us);
  options.between_nodes.bytes_per_second = one_of(random, {1e7, 1e8, 1.25e9, 1e10});
  options.jitter = one_of(random, {0.0, 0.5, 2.0, 10.0});
  options.detection = draw_duration(random, 100us, 20ms);
  options.eager_bytes = one_of(random, {0, 64, 256, 1024, 4096});
  options.credit_bytes = std::max<std::int64_t>(options.eager_bytes, one_of(random, {256, 4096, 16384}));
  options.segment_bytes = one_of(random, {128, 1024, 65536});
  return options;
}

Message draw_message(Random& random, int size, std::uint32_t unique_tag) {
  Message message;
  message.from = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
  message.to = static_cast<int>(
      (static_cast<std::uint64_t>(message.from) + 1 + random.below(static_cast<std::uint64_t>(size) - 1)) %
      static_cast<std::uint64_t>(size));
  message.from_anyone = random.chance(0.25);
  message.tag = message.from_anyone ? unique_tag : static_cast<std::uint32_t>(random.below(2));
  message.dtype = static_cast<DType>(random.below(dtype_count));
  message.count = one_of<std::int64_t>(random, {0, 1, 5, 40, 300, 1000});
  message.memory = random.chance(0.7) ? contract::Memory::contiguous : contract::Memory::reversed;
  message.seed = random.next();
  return message;
}

GroupScript draw_script(Random& random, std::vector<int> members, Duration timeout) {
  GroupScript script;
  script.members = std::move(members);
  script.window = static_cast<int>(one_of(random, {1, 1, 2, 4, 8}));
  script.timeout = timeout;
  script.seed = random.next();
  const auto count = static_cast<int>(random.between(5, 40));
  script.thinking_max = random.chance(0.3) ? Duration(0) : Duration(2 * script_length / count);
  const int size = static_cast<int>(script.members.size());
  const std::vector<std::int64_t> small = {0, 1, 2, 3, 7, 16, 33}, large = {100, 257}, huge = {1500};
  for (int i = 0; i < count; ++i) {
    const auto& lengths = random.chance(0.75) ? small : size <= 5 && random.chance(0.3) ? huge : large;
    ScenarioCall call{.collective = contract::some_calls(1, lengths, random.next()).front().call};
    if (size > 1 && random.chance(0.35))
      call.message = draw_message(random, size, 1000 + static_cast<std::uint32_t>(i));
    script.calls.push_back(std::move(call));
  }
  return script;
}

std::vector<GroupScript> draw_groups(Random& random, int size) {
  std::vector<int> world(static_cast<std::size_t>(size));
  std::iota(world.begin(), world.end(), 0);
  const Duration timeout = one_of<Duration>(random, {1s, 3s, 8s});
  std::vector<GroupScript> groups = {draw_script(random, world, timeout)};
  for (std::uint64_t more = random.below(4); more > 0; --more) {
    std::vector<int> members = world;
    std::shuffle(members.begin(), members.end(), random);
    members.resize(static_cast<std::size_t>(random.between(2, size)));
    groups.push_back(draw_script(random, std::move(members), timeout));
  }
  return groups;
}

Fault draw_fault_at(Random& random, int size) {
  Fault fault = messages::draw_fault(random, size, script_length, 1s);
  switch (fault.kind) {
    case Fault::Kind::slow_rank: fault.duration = draw_duration(random, 10us, 100ms); break;
    case Fault::Kind::delay_rank: fault.duration = draw_duration(random, 100us, 3s); break;
    default: fault.duration = draw_duration(random, 1ms, 20s); break;
  }
  if (random.chance(0.2)) fault.at = Duration(0);
  return fault;
}

// Something that is not what the others call, in a way that any rank can see.
ScenarioCall draw_other(Random& random, const ScenarioCall& call) {
  ScenarioCall other = call;
  if (other.message) {
    other.message->count += 3;
    return other;
  }
  contract::Case& mine = other.collective;
  do {
    mine = call.collective;
    switch (random.below(4)) {
      case 0: mine.verb = static_cast<Verb>(random.below(static_cast<std::uint64_t>(Verb::send))); break;
      case 1: mine.dtype = static_cast<DType>(random.below(dtype_count)); break;
      case 2: ++mine.length; break;
      default: ++mine.root; break;
    }
    mine.in_place = false;
    mine.sizing = contract::Sizing::even;
    mine.shape = contract::Shape::line;
    mine.other_axis = false;
  } while (!contract::makes_sense(mine));
  return other;
}

std::optional<Deviation> draw_deviation(Random& random, const std::vector<GroupScript>& groups) {
  Deviation deviation;
  deviation.kind = static_cast<Deviation::Kind>(random.below(deviation_kind_count));
  deviation.group = random.below(groups.size());
  const GroupScript& script = groups[deviation.group];
  deviation.call = random.below(script.calls.size());
  const ScenarioCall& call = script.calls[deviation.call];
  deviation.rank = script.members[random.below(script.members.size())];
  const bool refusable = !call.message && call.collective.verb != Verb::barrier;
  if (deviation.kind == Deviation::Kind::refusal && !refusable) return {};
  if (deviation.kind == Deviation::Kind::mismatch) {
    if (call.message) deviation.rank = script.members[static_cast<std::size_t>(call.message->to)];
    deviation.instead = draw_other(random, call);
  }
  return deviation;
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.cluster = draw_cluster(random);
  scenario.groups = draw_groups(random, scenario.cluster.size);
  scenario.leave_when_done = random.chance(0.3);
  const double lot = random.unit();
  const std::uint64_t faults = lot < 0.12            ? 0
                               : lot < 0.55          ? 1
                               : lot < 0.72          ? 2 + random.below(3)
                               : random.chance(0.25) ? 1
                                                     : 0;
  for (std::uint64_t i = 0; i < faults; ++i) scenario.faults.push_back(draw_fault_at(random, scenario.cluster.size));
  while (lot >= 0.72 && scenario.deviations.empty()) {
    if (const auto deviation = draw_deviation(random, scenario.groups)) scenario.deviations.push_back(*deviation);
  }
  return scenario;
}

}  // namespace tutti::sim
