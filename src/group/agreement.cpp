// agreement.cpp: comparing the calls of ranks: as messages arrive, as ranks leave, and by their records.
// SPDX-License-Identifier: Apache-2.0
#include "group/agreement.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr Duration calls_wait = 1s;  // for the peer to name the call that differs; then the group breaks without

std::string described(const CallOf& call) { return describe(call.signature) + call.shape + at_site(call.site); }

std::uint32_t tag_of(const control::Position& position) { return static_cast<std::uint32_t>(position.history); }

}  // namespace

control::Cause difference_between(CallOf own, CallOf theirs) {
  const Signature &a = own.signature, &b = theirs.signature;
  const std::uint64_t sequence = a.sequence;
  const bool look_alike = describe(a) == describe(b);
  const std::string_view hint = look_alike ? " with another shape, axis, factor, sizes or pairs" : "";
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
// this rank has made, and names the first that it did not.
void GroupCore::report_mismatch(const Signature& own, const Signature& theirs, int world_peer) {
  if (own.is_same_call(theirs)) return send_calls(world_peer);
  const int peer = rank_of(world_peer);
  CallOf mine{.rank = facts_.rank, .signature = own};
  if (const Operation* const operation = running(own.sequence)) {
    mine.site = operation->site;
    if (describe(own) == describe(theirs)) mine.shape = shape_text(*operation);
  }
  request_abort(difference_between(std::move(mine),
                                   {.rank = peer, .signature = theirs, .site = stalls_.site_of(peer, own.sequence)}));
}

void GroupCore::send_calls(int world_peer) {
  if (proposed_ || broken_ || differs_from_) return;
  differs_from_ = {world_peer, runtime_->clock().now()};
  runtime_->control().probe(
      world_peer,
      encode(StallProbe{.group = facts_.id, .epoch = facts_.epoch, .signature = {}, .calls = calls_.recent()}));
}

void GroupCore::compare_calls(int world_peer, std::span<const Signature> theirs) {
  if (const auto difference = first_difference(calls_, theirs)) {
    report_mismatch(difference->own, difference->theirs, world_peer);
  } else {
    request_abort(difference_before(facts_.rank, rank_of(world_peer), calls_.next()));
  }
}

// The peer may be gone.
void GroupCore::settle_difference(TimePoint now) {
  if (!differs_from_ || proposed_ || now - differs_from_->since < calls_wait) return;
  request_abort(difference_before(facts_.rank, rank_of(differs_from_->world_peer), calls_.next()));
}

// ---- as ranks leave

control::Position GroupCore::position() const {
  const std::uint32_t tag = broken_ ? Signature::unknown_history : *calls_.tag_at(calls_.next());
  return {.group = facts_.id, .epoch = facts_.epoch, .calls = calls_.next(), .history = tag};
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
  if (broken_ || proposed_ || theirs.epoch != facts_.epoch || tag_of(theirs) == Signature::unknown_history) return;
  if (theirs.calls > calls_.next()) {
    leavers_ahead_.emplace(world_rank, theirs);  // compared when this rank has come so far
    return;
  }
  const auto own = calls_.tag_at(theirs.calls);
  if (own && !histories_agree(*own, tag_of(theirs))) return send_calls(world_rank);
  // A root sends and returns: the call may be over here, and those it was for have left.
  const Signature* const missed = calls_.find(theirs.calls);
  if (missed != nullptr && running(theirs.calls) == nullptr) report_left(world_rank, theirs.calls);
}

void GroupCore::compare_with_leavers() {
  for (const auto& [world_rank, position] : std::map(leavers_ahead_)) {
    if (position.calls <= calls_.next()) compare_with_leaver(world_rank, position);
  }
}

// What is known when the group ends, or this rank: nobody is left to name the call.
std::optional<control::Cause> GroupCore::open_difference() const {
  if (broken_) return std::nullopt;
  if (proposed_) {  // the members have yet to agree on it
    const bool is_difference =
        proposed_->kind == control::Cause::Kind::mismatch || proposed_->kind == control::Cause::Kind::lost;
    return is_difference ? proposed_ : std::nullopt;
  }
  if (differs_from_) return difference_before(facts_.rank, rank_of(differs_from_->world_peer), calls_.next());
  if (leavers_ahead_.empty()) return std::nullopt;
  const auto& [world_rank, position] = *leavers_ahead_.begin();
  return control::Cause{
      .kind = control::Cause::Kind::mismatch,
      .culprits = {},
      .sequence = calls_.next(),
      .text =
          fmt::format("rank {} left after {} calls of the group, rank {} ends it after {}; every rank of a group must "
                      "make the same calls in the same order",
                      rank_of(world_rank), position.calls, facts_.rank, calls_.next())};
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

void Runtime::compare_closed(int world_rank, const control::Position& theirs) {
  const auto found = closed_.find(theirs.group);
  if (found == closed_.end() || found->second.facts.epoch != theirs.epoch) return;
  const ClosedGroup& own = found->second;
  const std::uint32_t tag = *own.calls.tag_at(own.calls.next());
  if (theirs.calls == own.calls.next() && histories_agree(tag, tag_of(theirs))) return;
  if (tag == Signature::unknown_history || tag_of(theirs) == Signature::unknown_history) return;
  // Should the peer be gone before it can say which call it was, that it differed is known.
  open_differences_.emplace(theirs.group,
                            difference_before(own.facts.rank, own.facts.rank_of(world_rank), own.calls.next()));
  control_->probe(
      world_rank,
      encode(StallProbe{.group = theirs.group, .epoch = theirs.epoch, .signature = {}, .calls = own.calls.recent()}));
}

void Runtime::compare_calls_of_closed(int world_peer, const StallProbe& probe) {
  const auto found = closed_.find(probe.group);
  if (found == closed_.end() || found->second.facts.epoch != probe.epoch) return;
  const ClosedGroup& own = found->second;
  const int peer = own.facts.rank_of(world_peer);
  if (peer < 0) return;
  const auto difference = first_difference(own.calls, probe.calls);
  control_->abort(probe.group, probe.epoch,
                  difference ? difference_between({.rank = own.facts.rank, .signature = difference->own},
                                                  {.rank = peer, .signature = difference->theirs})
                             : difference_before(own.facts.rank, peer, own.calls.next()));
}

}  // namespace tutti
