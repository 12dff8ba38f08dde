// machine_calls.cpp: requests on subgroups, as the machine runs them: at once, when all members have come to them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "plan/machine.hpp"

namespace tutti {

namespace {

Spec spec_of(const Call& call, int member) {
  Spec spec{.verb = call.verb, .rank = member, .size = static_cast<int>(call.members.size()), .root = call.root};
  if (call.counts.size() == call.members.size() && call.counts.size() > 1) spec.counts = call.counts;
  if (call.counts.size() == 1) spec.count = call.counts[0];
  return spec;
}

}  // namespace

// The k-th call of each member on the same members belongs together.
std::string Machine::match_calls(std::span<const Plan> plans) {
  meetings_.clear();
  std::map<std::pair<std::vector<int>, int>, std::uint32_t> meeting_of;
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    std::map<std::vector<int>, int> so_far;
    for (std::uint32_t i = 0; i < plans[rank].steps.size(); ++i) {
      if (plans[rank].steps[i].act != Act::call) continue;
      const Call& call = plans[rank].calls[static_cast<std::size_t>(plans[rank].steps[i].call)];
      const int k = so_far[call.members]++;
      const auto [found, added] = meeting_of.try_emplace({call.members, k}, meetings_.size());
      if (added) meetings_.emplace_back();
      meetings_[found->second].members.push_back({rank, i});
      link_of_[rank][i] = found->second;
    }
  }
  for (const Meeting& meeting : meetings_) {
    if (std::string problem = check_meeting(plans, meeting); !problem.empty()) return problem;
  }
  return "";
}

std::string Machine::check_meeting(std::span<const Plan> plans, const Meeting& meeting) const {
  const auto call_at = [&](Place p) -> const Call& { return plans[p.rank].calls[std::size_t(step_at(p).call)]; };
  const Call& first = call_at(meeting.members.front());
  for (std::size_t i = 0; i < meeting.members.size(); ++i) {
    const Place place = meeting.members[i];
    const Call& call = call_at(place);
    const auto found = std::find(call.members.begin(), call.members.end(), static_cast<int>(place.rank));
    if (found == call.members.end()) return fmt::format("rank {} calls on a subgroup without it", place.rank);
    if (call.verb != first.verb || call.root != first.root || call.counts != first.counts ||
        call.finish != first.finish) {
      return fmt::format("ranks {} and {} disagree on a {} of their subgroup", meeting.members[0].rank, place.rank,
                         name_of(first.verb));
    }
    const Spec spec = spec_of(call, static_cast<int>(found - call.members.begin()));
    if (call.from.count != input_count(spec) || call.to.count != output_count(spec)) {
      return fmt::format("rank {} step {}: a {} that takes {} and gives {} elements has pieces of {} and {}",
                         place.rank, place.step, name_of(call.verb), input_count(spec), output_count(spec),
                         call.from.count, call.to.count);
    }
  }
  if (meeting.members.size() != first.members.size()) {
    return fmt::format("a {} of {} ranks is called by {} of them", name_of(first.verb), first.members.size(),
                       meeting.members.size());
  }
  return "";
}

void Machine::meet(const Meeting& meeting) {
  const Place any = meeting.members.front();
  const Call& shape = plans_[any.rank].calls[std::size_t(step_at(any).call)];
  // Places in the order of the subgroup's ranks, which is the order of reduction.
  std::vector<Place> places(meeting.members.size());
  for (const Place place : meeting.members) {
    const auto found = std::find(shape.members.begin(), shape.members.end(), static_cast<int>(place.rank));
    places[static_cast<std::size_t>(found - shape.members.begin())] = place;
  }
  operands_.clear();  // everything that goes in: reduced, or one after the other
  for (std::size_t m = 0; m < places.size(); ++m) {
    const Piece from = step_at(places[m]).from;
    check_defined(places[m], from);
    const Symbol* cells = at(places[m].rank, from);
    if (!reduces(shape.verb) || m == 0) {
      operands_.insert(operands_.end(), cells, cells + from.count);
    } else {
      for (std::int64_t i = 0; i < from.count; ++i)
        operands_[std::size_t(i)] = combine(operands_[std::size_t(i)], cells[i]);
    }
  }
  if (shape.finish)
    std::transform(operands_.begin(), operands_.end(), operands_.begin(), [&](auto& s) { return last_touch(s); });
  const bool split = splits(shape.verb);
  const Blocks blocks = blocks_of(spec_of(shape, 0));
  for (std::size_t m = 0; m < places.size(); ++m) {
    const Piece to = step_at(places[m]).to;
    std::copy_n(operands_.begin() + (split ? blocks.offset(static_cast<int>(m)) : 0), to.count, at(places[m].rank, to));
  }
  for (const Place place : places) complete(place);
}

}  // namespace tutti
