// closed_groups.cpp: groups whose handle is gone.
// SPDX-License-Identifier: Apache-2.0
#include "group/closed_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "group/core.hpp"

namespace tutti {
namespace {

constexpr std::size_t closed_limit = 64;  // groups whose calls are remembered

}  // namespace

void ClosedGroups::keep(const GroupCore& group) {
  const std::uint64_t id = group.facts().id;
  const auto kept =
      groups_.insert_or_assign(id, Closed{.facts = group.facts(), .calls = group.parts().state.calls}).first;
  if (group.parts().failure.is_broken()) kept->second.calls.give_up();
  if (const auto difference = group.parts().agreement.what_differed()) open_.emplace(id, *difference);
  order_.push_back(id);
  if (order_.size() <= closed_limit) return;
  groups_.erase(order_.front());
  open_.erase(order_.front());
  order_.pop_front();
}

std::vector<control::Position> ClosedGroups::positions() const {
  std::vector<control::Position> all;
  for (const auto& [id, group] : groups_)
    all.push_back(position_in(group.facts, group.calls.digest_at(group.calls.next())));
  return all;
}

void ClosedGroups::compare(int world_rank, const control::Position& theirs, TimePoint now) {
  const auto found = groups_.find(theirs.group);
  if (found == groups_.end() || found->second.facts.epoch != theirs.epoch || !theirs.is_known) return;
  const Closed& own = found->second;
  const std::uint64_t calls = own.calls.next();
  const bool in_number = theirs.calls != calls;
  const Comparison comparison = own.calls.compare(digest_of(theirs));
  if (comparison == Comparison::unknown || (!in_number && comparison != Comparison::different)) return;
  const int peer = own.facts.rank_of(world_rank);
  // Should the peer be gone before it can say which call it was, that it differed is known.
  open_.emplace(theirs.group,
                OpenDifference{.otherwise = in_number ? numbers_differ({peer, theirs.calls}, {own.facts.rank, calls})
                                                      : difference_before(own.facts.rank, peer, calls),
                               .world_peer = world_rank,
                               .is_certain = in_number,
                               .question = {.about = StallProbe::About::earlier_calls,
                                            .group = theirs.group,
                                            .epoch = theirs.epoch,
                                            .digest = own.calls.digest_at(std::min(calls, theirs.calls)),
                                            .calls = own.calls.recent()}});
  pursue(now);
}

StallAnswer::State ClosedGroups::answer(int world_peer, const StallProbe& probe) {
  using State = StallAnswer::State;
  const auto found = groups_.find(probe.group);
  if (found == groups_.end() || found->second.facts.epoch != probe.epoch) return State::unknown_group;
  const Closed& own = found->second;
  const int peer = own.facts.rank_of(world_peer);
  if (peer < 0) return State::unknown_group;
  const bool in_one = probe.about == StallProbe::About::this_call;
  const auto difference = first_difference(own.calls, in_one ? std::span(&probe.signature, 1) : std::span(probe.calls));
  if (!difference && in_one) return State::forgotten;
  if (!difference) {
    const Comparison comparison = own.calls.compare(probe.digest);
    if (comparison == Comparison::same || comparison == Comparison::not_yet) return State::agrees;
    control_.abort(probe.group, probe.epoch, difference_before(own.facts.rank, peer, probe.digest.calls));
    return State::differs;
  }
  control_.abort(probe.group, probe.epoch,
                 difference_between(
                     {.rank = own.facts.rank, .signature = difference->own},
                     {.rank = peer, .signature = difference->theirs, .details = probe.details, .site = probe.site}));
  return State::differs;
}

void ClosedGroups::take_answer(int world_peer, const StallAnswer& answer) {
  const auto found = open_.find(answer.group);
  if (found == open_.end() || found->second.world_peer != world_peer) return;
  if (answer.state == StallAnswer::State::agrees && !found->second.is_certain) {
    open_.erase(found);
  } else if (answer.state != StallAnswer::State::differs) {
    found->second.world_peer = -1;  // it cannot say more
  }
}

bool ClosedGroups::pursue(TimePoint now) {
  bool may_be_named = false;
  for (auto& [id, difference] : open_) may_be_named |= difference.pursue(control_, now);
  return may_be_named;
}

bool ClosedGroups::take_abort(std::uint64_t group, const control::Cause& cause) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return false;
  const bool is_own = open_.erase(group) > 0;
  found->second.calls.give_up();  // nothing more is to be found
  if (is_own || cause.kind == control::Cause::Kind::mismatch) note_late(found->second.facts, cause);
  return true;
}

void ClosedGroups::note_late(const GroupFacts& facts, const control::Cause& cause) {
  const std::string what = fmt::format("rank {} of {}: {}", facts.rank, facts.size, cause.text);
  if (cause.kind == control::Cause::Kind::mismatch) return note_late(std::make_exception_ptr(Mismatch(what)));
  if (cause.kind != control::Cause::Kind::lost || cause.culprits.empty()) return;
  const int rank = cause.culprits.front();
  const auto index = static_cast<std::size_t>(rank);
  const std::string host = rank >= 0 && index < hosts_.size() ? hosts_[index] : std::string();
  note_late(std::make_exception_ptr(PeerLost(what, rank, host, cause.text)));
}

void ClosedGroups::note_all_late() {
  for (const auto& [id, difference] : open_) note_late(groups_.at(id).facts, difference.otherwise);
}

}  // namespace tutti
