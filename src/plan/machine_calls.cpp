// machine_calls.cpp: requests on subgroups, as the machine runs them: at once, when all members have come to them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "plan/machine.hpp"

namespace tutti {

namespace {

Spec spec_of(const SubCollective& call, int member) {
  Spec spec{.verb = call.verb, .rank = member, .size = static_cast<int>(call.members.size()), .root = call.root};
  if (call.counts.size() == call.members.size() && call.counts.size() > 1) spec.counts = call.counts;
  if (call.counts.size() == 1) spec.count = call.counts[0];
  return spec;
}

}  // namespace

// The k-th call of each member on the same members belongs together.
std::string Machine::match_calls(std::span<const Plan> plans) {
  matches_.clear();
  std::map<std::pair<std::vector<int>, int>, std::uint32_t> match_of;
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    std::map<std::vector<int>, int> so_far;
    for (std::uint32_t i = 0; i < plans[rank].steps.size(); ++i) {
      if (plans[rank].steps[i].act != Act::call) continue;
      const SubCollective& call = plans[rank].calls[static_cast<std::size_t>(plans[rank].steps[i].call)];
      const int k = so_far[call.members]++;
      const auto [found, added] = match_of.try_emplace({call.members, k}, matches_.size());
      if (added) matches_.emplace_back();
      matches_[found->second].members.push_back({rank, i});
      link_of_[rank][i] = found->second;
    }
  }
  for (const SubCollectiveMatch& match : matches_) {
    if (std::string problem = check_match(plans, match); !problem.empty()) return problem;
  }
  return "";
}

std::string Machine::check_match(std::span<const Plan> plans, const SubCollectiveMatch& match) const {
  const auto call_at = [&](Place p) -> const SubCollective& {
    return plans[p.rank].calls[std::size_t(step_at(p).call)];
  };
  const SubCollective& first = call_at(match.members.front());
  for (std::size_t i = 0; i < match.members.size(); ++i) {
    const Place place = match.members[i];
    const SubCollective& call = call_at(place);
    const auto found = std::find(call.members.begin(), call.members.end(), static_cast<int>(place.rank));
    if (found == call.members.end()) return fmt::format("rank {} calls on a subgroup without it", place.rank);
    if (call.verb != first.verb || call.root != first.root || call.counts != first.counts ||
        call.finish != first.finish) {
      return fmt::format("ranks {} and {} disagree on a {} of their subgroup", match.members[0].rank, place.rank,
                         name_of(first.verb));
    }
    const Spec spec = spec_of(call, static_cast<int>(found - call.members.begin()));
    if (call.from.count != input_count(spec) || call.to.count != output_count(spec)) {
      return fmt::format("rank {} step {}: a {} that takes {} and gives {} elements has pieces of {} and {}",
                         place.rank, place.step, name_of(call.verb), input_count(spec), output_count(spec),
                         call.from.count, call.to.count);
    }
  }
  if (match.members.size() != first.members.size()) {
    return fmt::format("a {} of {} ranks is called by {} of them", name_of(first.verb), first.members.size(),
                       match.members.size());
  }
  return "";
}

void Machine::run_match(const SubCollectiveMatch& match) {
  const Place any = match.members.front();
  const SubCollective& shape = plans_[any.rank].calls[std::size_t(step_at(any).call)];
  // Places in the order of the subgroup's ranks, which is the order of reduction.
  std::vector<Place> places(match.members.size());
  for (const Place place : match.members) {
    const auto found = std::find(shape.members.begin(), shape.members.end(), static_cast<int>(place.rank));
    places[static_cast<std::size_t>(found - shape.members.begin())] = place;
  }
  operands_.clear();  // everything that goes in: reduced, or one after the other
  for (std::size_t m = 0; m < places.size(); ++m) {
    const Piece from = step_at(places[m]).from;
    check_defined(places[m], from);
    const Symbol* elements = at(places[m].rank, from);
    if (!reduces(shape.verb) || m == 0) {
      operands_.insert(operands_.end(), elements, elements + from.count);
    } else {
      for (std::int64_t i = 0; i < from.count; ++i)
        operands_[std::size_t(i)] = combine(operands_[std::size_t(i)], elements[i]);
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
