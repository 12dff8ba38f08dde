// agreement.cpp: comparing the calls of ranks: as messages arrive, as ranks leave, and by their records.
// SPDX-License-Identifier: Apache-2.0
#include "group/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr Duration ask_again = 100ms;  // a question may be lost with a rank on its way

std::string described(const CallOf& call) { return describe(call.signature) + call.details + at_site(call.site); }

CallDigest digest_of(const control::Position& position) {
  return {.calls = position.calls, .sum = position.history, .refused = position.refused, .is_known = position.is_known};
}

control::Position position_in(const GroupFacts& facts, const CallDigest& digest) {
  return {.group = facts.id,
          .epoch = facts.epoch,
          .calls = digest.calls,
          .history = digest.sum,
          .refused = digest.refused,
          .is_known = digest.is_known};
}

// Of a long text the part around the place where the two begin to differ.
std::string_view from_difference(std::string_view text, std::size_t differs_at, std::string& room) {
  constexpr std::size_t whole = 240, before = 60;
  if (text.size() <= whole) return text;
  const std::size_t begin = differs_at > before ? differs_at - before : 0;
  const std::string_view part = text.substr(std::min(begin, text.size()), whole);
  room = fmt::format("{}{}{}", begin > 0 ? " …" : "", part, begin + whole < text.size() ? "…" : "");
  return room;
}

void shorten(std::string& one, std::string& other) {
  const auto differs = std::ranges::mismatch(one, other).in1;
  const auto at = static_cast<std::size_t>(differs - one.begin());
  std::string room, other_room;
  const std::string first(from_difference(one, at, room));
  other = std::string(from_difference(other, at, other_room));
  one = first;
}

}  // namespace

bool OpenDifference::pursue(control::Control& control, TimePoint now) {
  if (world_peer < 0 || !control.may_answer(world_peer)) return false;
  if (now - asked_at >= ask_again) {
    asked_at = now;
    control.probe(world_peer, encode(question));
  }
  return true;
}

control::Cause difference_between(CallOf own, CallOf theirs) {
  const Signature &a = own.signature, &b = theirs.signature;
  const std::uint64_t sequence = a.sequence;
  shorten(own.details, theirs.details);
  const bool look_alike =
      describe(a) + own.details == describe(b) + theirs.details || own.details.empty() != theirs.details.empty();
  const std::string_view hint = look_alike && describe(a) == describe(b)
                                    ? " with another shape, axis, factor, sizes, pairs or tree of arrays"
                                    : "";
  const std::string_view differentiation = ((a.flags ^ b.flags) & Signature::differentiated) != 0
                                               ? " (one takes part in differentiation, the other does not)"
                                               : "";
  if (own.rank > theirs.rank) std::swap(own, theirs);
  return {.kind = control::Cause::Kind::mismatch,
          .culprits = {},
          .sequence = sequence,
          .text = fmt::format("rank {} called {}, but rank {} called {}{}{}; every rank of a group must make the same "
                              "calls in the same order",
                              own.rank, described(own), theirs.rank, described(theirs), hint, differentiation)};
}

control::Cause numbers_differ(CallCount left, CallCount ends) {
  return {.kind = control::Cause::Kind::mismatch,
          .culprits = {},
          .sequence = std::min(left.calls, ends.calls),
          .text = fmt::format("rank {} left after {} calls of the group, rank {} ends it after {}; every rank of a "
                              "group must make the same calls in the same order",
                              left.rank, left.calls, ends.rank, ends.calls)};
}

control::Cause difference_before(int rank, int other, std::uint64_t calls) {
  return {.kind = control::Cause::Kind::mismatch,
          .culprits = {},
          .sequence = calls,
          .text = fmt::format("ranks {} and {} did not make the same calls: one of those before #{} differed in its "
                              "verb, root, dtype, count or reduction, too long ago to be named; every rank of a group "
                              "must make the same calls in the same order",
                              std::min(rank, other), std::max(rank, other), calls)};
}

std::optional<Difference> first_difference(const CallHistory& own, std::span<const Signature> theirs) {
  for (const Signature& call : theirs) {
    const Signature* const mine = own.find(call.sequence);
    if (mine != nullptr && !mine->is_same_call(call)) return Difference{*mine, call};
  }
  return std::nullopt;
}

// ---- as messages arrive

TransportListener::Verdict GroupCore::arrived(int world_peer, const Envelope& envelope) {
  using Verdict = TransportListener::Verdict;
  if (envelope.epoch != facts_.epoch || broken_) return Verdict::drop;
  if (envelope.channel != 0) return Verdict::keep;
  const Signature& theirs = envelope.signature;
  if (theirs.sequence >= calls_.next()) {
    unexpected_signatures_.try_emplace({theirs.sequence, world_peer}, theirs);
    return Verdict::keep;
  }
  const Operation* const operation = running(theirs.sequence);
  const Signature* const own = operation != nullptr ? &operation->request.signature : calls_.find(theirs.sequence);
  if (own != nullptr && *own != theirs) {
    report_mismatch(*own, theirs, world_peer);
    return Verdict::drop;
  }
  return operation != nullptr ? Verdict::keep : Verdict::drop;
}

void GroupCore::check_unexpected(const Signature& own) {
  const auto end = unexpected_signatures_.lower_bound({own.sequence + 1, std::numeric_limits<int>::min()});
  for (auto unexpected = unexpected_signatures_.begin(); unexpected != end;
       unexpected = unexpected_signatures_.erase(unexpected)) {
    if (unexpected->first.first == own.sequence && unexpected->second != own)
      report_mismatch(own, unexpected->second, unexpected->first.second);
  }
}

// Signatures that differ in nothing but what came before say that an earlier call was another one: the peer is told which ones
// this rank has made, and names the first that it did not. A signature has shapes and the like as a hash only: the peer is told this
// rank's, and says both.
void GroupCore::report_mismatch(const Signature& own, const Signature& theirs, int world_peer) {
  if (own.is_same_call(theirs)) return send_calls(world_peer, own.sequence);
  const int peer = rank_of(world_peer);
  CallOf mine = call_of(own);
  StallProbe question{.about = StallProbe::About::this_call,
                      .group = facts_.id,
                      .epoch = facts_.epoch,
                      .signature = own,
                      .site = mine.site,
                      .details = mine.details};
  open_difference(
      {.otherwise = difference_between(
           std::move(mine), {.rank = peer, .signature = theirs, .site = stalls_.site_of(peer, own.sequence)}),
       .world_peer = world_peer,
       .is_certain = true,
       .question = std::move(question)});
}

CallOf GroupCore::call_of(const Signature& own) const {
  CallOf call{.rank = facts_.rank, .signature = own};
  if (const Operation* const operation = running(own.sequence)) {
    call.site = operation->site;
    call.details = details_of(operation->request);
    return call;
  }
  // The call is over, but its shape may still be known.
  if (const CachedCall* const known = prepared_.find(own)) call.details = details_of(known->asked());
  return call;
}

void GroupCore::open_difference(OpenDifference difference) {
  if (proposed_ || broken_ || (difference_ && (difference_->is_certain || !difference.is_certain))) return;
  difference_ = std::move(difference);
  settle_difference(runtime_->clock().now());
}

void GroupCore::send_calls(int world_peer, std::uint64_t before) {
  open_difference({.otherwise = difference_before(facts_.rank, rank_of(world_peer), before),
                   .world_peer = world_peer,
                   .question = {.about = StallProbe::About::earlier_calls,
                                .group = facts_.id,
                                .epoch = facts_.epoch,
                                .digest = calls_.digest_at(before),
                                .calls = calls_.recent()}});
}

StallAnswer::State GroupCore::compare_calls(int world_peer, const StallProbe& probe) {
  const int peer = rank_of(world_peer);
  if (probe.about == StallProbe::About::this_call) {
    const Signature* const own = calls_.find(probe.signature.sequence);
    if (own == nullptr) return StallAnswer::State::forgotten;
    if (own->is_same_call(probe.signature)) return StallAnswer::State::agrees;
    request_abort(difference_between(
        call_of(*own), {.rank = peer, .signature = probe.signature, .details = probe.details, .site = probe.site}));
    return StallAnswer::State::differs;
  }
  if (const auto difference = first_difference(calls_, probe.calls)) {
    report_mismatch(difference->own, difference->theirs, world_peer);
    return StallAnswer::State::differs;
  }
  const Comparison comparison = calls_.compare(probe.digest);
  if (comparison == Comparison::same || comparison == Comparison::not_yet) return StallAnswer::State::agrees;
  request_abort(difference_before(facts_.rank, peer, probe.digest.calls));
  return StallAnswer::State::differs;
}

// As long as the peer is there, it will answer.
void GroupCore::settle_difference(TimePoint now) {
  if (difference_ && !proposed_ && !difference_->pursue(runtime_->control(), now))
    request_abort(difference_->otherwise);
}

void GroupCore::take_word_on_difference(int world_peer, StallAnswer::State state) {
  if (!difference_ || difference_->world_peer != world_peer) return;
  if (state == StallAnswer::State::agrees && !difference_->is_certain) {
    difference_.reset();
  } else if (state != StallAnswer::State::differs) {
    request_abort(difference_->otherwise);
  }
}

bool GroupCore::is_naming_difference(TimePoint now) {
  return difference_ && !proposed_ && !broken_ && difference_->pursue(runtime_->control(), now);
}

// ---- as ranks leave

control::Position GroupCore::position() const {
  // A rank that does not let its calls end (in the simulator ranks have no thread to wait with) has taken part in those before them.
  const bool all_end = runtime_->lets_calls_end() || collectives_.empty();
  CallDigest digest = calls_.digest_at(all_end ? calls_.next() : collectives_.oldest()->request.signature.sequence);
  if (broken_) digest.is_known = false;
  return position_in(facts_, digest);
}

void GroupCore::member_left(int world_rank) {
  somebody_left_ = true;
  if (!collectives_.empty())
    collectives_.oldest()->probed_at = TimePoint{};  // look again soon: it may wait for the one that left
  if (const auto position = runtime_->position_when_leaving(world_rank, facts_.id))
    compare_with_leaver(world_rank, *position);
}

void GroupCore::compare_with_leaver(int world_rank, const control::Position& theirs) {
  leavers_ahead_.erase(world_rank);
  if (broken_ || proposed_ || theirs.epoch != facts_.epoch || !theirs.is_known) return;
  if (theirs.calls > calls_.next()) {
    leavers_ahead_.emplace(world_rank, theirs);  // compared when this rank has come so far
    return;
  }
  if (calls_.compare(digest_of(theirs)) == Comparison::different) return send_calls(world_rank, theirs.calls);
  // A root sends and returns: the call may be over here, and those it was for have left.
  const Signature* const missed = calls_.find(theirs.calls);
  if (missed != nullptr && running(theirs.calls) == nullptr) report_left(world_rank, theirs.calls);
}

void GroupCore::compare_with_leavers() {
  for (const auto& [world_rank, position] : std::map(leavers_ahead_)) {
    if (position.calls <= calls_.next()) compare_with_leaver(world_rank, position);
  }
}

// What is known when the group ends, or this rank.
std::optional<OpenDifference> GroupCore::what_differed() const {
  if (broken_) return std::nullopt;
  if (proposed_) {  // the members have yet to agree on it
    const bool is_difference =
        proposed_->kind == control::Cause::Kind::mismatch || proposed_->kind == control::Cause::Kind::lost;
    return is_difference ? std::optional(OpenDifference{.otherwise = *proposed_}) : std::nullopt;
  }
  if (difference_) return difference_;
  if (leavers_ahead_.empty()) return std::nullopt;
  const auto& [world_rank, position] = *leavers_ahead_.begin();
  return OpenDifference{.otherwise =
                            numbers_differ({rank_of(world_rank), position.calls}, {facts_.rank, calls_.next()})};
}

ClosedGroup GroupCore::closed() const {
  ClosedGroup group{.facts = facts_, .calls = calls_};
  if (broken_) group.calls.give_up();
  return group;
}

// ---- groups whose handle is gone

std::optional<control::Position> Runtime::position_when_leaving(int world_rank, std::uint64_t group) const {
  const auto left = left_.find(world_rank);
  if (left == left_.end()) return std::nullopt;
  const auto found = left->second.find(group);
  return found == left->second.end() ? std::nullopt : std::optional(found->second);
}

control::Position ClosedGroup::position() const { return position_in(facts, calls.digest_at(calls.next())); }

void Runtime::compare_closed(int world_rank, const control::Position& theirs) {
  const auto found = closed_.find(theirs.group);
  if (found == closed_.end() || found->second.facts.epoch != theirs.epoch || !theirs.is_known) return;
  const ClosedGroup& own = found->second;
  const std::uint64_t calls = own.calls.next();
  const bool in_number = theirs.calls != calls;
  const Comparison comparison = own.calls.compare(digest_of(theirs));
  if (comparison == Comparison::unknown || (!in_number && comparison != Comparison::different)) return;
  const int peer = own.facts.rank_of(world_rank);
  // Should the peer be gone before it can say which call it was, that it differed is known.
  open_differences_.emplace(
      theirs.group,
      OpenDifference{.otherwise = in_number ? numbers_differ({peer, theirs.calls}, {own.facts.rank, calls})
                                            : difference_before(own.facts.rank, peer, calls),
                     .world_peer = world_rank,
                     .is_certain = in_number,
                     .question = {.about = StallProbe::About::earlier_calls,
                                  .group = theirs.group,
                                  .epoch = theirs.epoch,
                                  .digest = own.calls.digest_at(std::min(calls, theirs.calls)),
                                  .calls = own.calls.recent()}});
  pursue_differences();
}

StallAnswer::State Runtime::compare_calls_of_closed(int world_peer, const StallProbe& probe) {
  const auto found = closed_.find(probe.group);
  if (found == closed_.end() || found->second.facts.epoch != probe.epoch) return StallAnswer::State::unknown_group;
  const ClosedGroup& own = found->second;
  const int peer = own.facts.rank_of(world_peer);
  if (peer < 0) return StallAnswer::State::unknown_group;
  const bool in_one = probe.about == StallProbe::About::this_call;
  const auto difference = first_difference(own.calls, in_one ? std::span(&probe.signature, 1) : std::span(probe.calls));
  if (!difference) return in_one ? StallAnswer::State::forgotten : StallAnswer::State::agrees;
  control_->abort(probe.group, probe.epoch,
                  difference_between(
                      {.rank = own.facts.rank, .signature = difference->own},
                      {.rank = peer, .signature = difference->theirs, .details = probe.details, .site = probe.site}));
  return StallAnswer::State::differs;
}

// Whether a peer may still name a call that differed.
bool Runtime::pursue_differences() {
  const TimePoint now = clock().now();
  bool may_be_named = false;
  for (auto& [id, difference] : open_differences_) may_be_named |= difference.pursue(*control_, now);
  for (const auto& [id, group] : groups_) may_be_named |= group->is_naming_difference(now);
  return may_be_named;
}

void Runtime::take_word_on_closed(int world_peer, const StallAnswer& answer) {
  const auto found = open_differences_.find(answer.group);
  if (found == open_differences_.end() || found->second.world_peer != world_peer) return;
  if (answer.state == StallAnswer::State::agrees && !found->second.is_certain) {
    open_differences_.erase(found);
  } else if (answer.state != StallAnswer::State::differs) {
    found->second.world_peer = -1;  // it cannot say more
  }
}

}  // namespace tutti
