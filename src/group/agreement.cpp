// agreement.cpp: whether the members of a group make the same calls.
// SPDX-License-Identifier: Apache-2.0
#include "group/agreement.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "group/runtime.hpp"

namespace tutti {

TransportListener::Verdict CallAgreement::arrived(int world_peer, const Envelope& envelope) {
  using Verdict = TransportListener::Verdict;
  if (envelope.epoch != state_.facts.epoch || failure_.is_broken()) return Verdict::drop;
  if (envelope.channel != 0) return Verdict::keep;
  const Signature& theirs = envelope.signature;
  if (theirs.sequence >= state_.calls.next()) {
    early_.try_emplace({theirs.sequence, world_peer}, theirs);
    return Verdict::keep;
  }
  const Operation* const operation = running_.find(theirs.sequence);
  const Signature* const own =
      operation != nullptr ? &operation->request.signature : state_.calls.find(theirs.sequence);
  if (own != nullptr && *own != theirs) {
    report_mismatch(*own, theirs, world_peer);
    return Verdict::drop;
  }
  return operation != nullptr ? Verdict::keep : Verdict::drop;
}

void CallAgreement::compare_new_call(const Signature& own) {
  const auto end = early_.lower_bound({own.sequence + 1, std::numeric_limits<int>::min()});
  for (auto early = early_.begin(); early != end; early = early_.erase(early)) {
    if (early->first.first == own.sequence && early->second != own)
      report_mismatch(own, early->second, early->first.second);
  }
  for (const auto& [world_rank, position] : std::map(leavers_)) {
    compare_with_leaver(world_rank, position);
    // Not every call waits for all members, so it is not enough to look when one does.
    if (!difference_ && position.calls <= own.sequence) report_left(world_rank, own.sequence);
  }
}

StallProbe CallAgreement::question(StallProbe::About about) const {
  return {.about = about, .group = state_.facts.id, .epoch = state_.facts.epoch};
}

// If two signatures differ only in the digest of earlier calls, an earlier call differed: this rank sends its calls to the peer, which names
// the first that it did not make. A signature holds shapes and the like only as a hash: this rank sends its own in full, and the peer names
// both.
void CallAgreement::report_mismatch(const Signature& own, const Signature& theirs, int world_peer) {
  if (own.is_same_call(theirs)) return send_calls(world_peer, own.sequence);
  const int peer = state_.facts.rank_of(world_peer);
  CallOf mine = call_of(own);
  StallProbe about_call = question(StallProbe::About::this_call);
  about_call.signature = own;
  about_call.site = mine.site;
  about_call.details = mine.details;
  CallOf other{.rank = peer, .signature = theirs, .site = state_.stalls.site_of(peer, own.sequence)};
  open({.otherwise = difference_between(std::move(mine), std::move(other)),
        .world_peer = world_peer,
        .is_certain = true,
        .question = std::move(about_call)});
}

CallOf CallAgreement::call_of(const Signature& own) const {
  CallOf call{.rank = state_.facts.rank, .signature = own};
  if (const Operation* const operation = running_.find(own.sequence)) {
    call.site = operation->site;
    call.details = details_of(operation->request);
  } else if (const CachedCall* const known = state_.prepared.find(own)) {  // it is over, but its shape is known
    call.details = details_of(known->asked());
  }
  return call;
}

void CallAgreement::open(OpenDifference difference) {
  if (failure_.is_certain() || (difference_ && (difference_->is_certain || !difference.is_certain))) return;
  difference_ = std::move(difference);
  pursue(state_.runtime->clock().now());
}

void CallAgreement::send_calls(int world_peer, std::uint64_t before) {
  StallProbe about_earlier = question(StallProbe::About::earlier_calls);
  about_earlier.digest = state_.calls.digest_at(before);
  about_earlier.calls = state_.calls.recent();
  open({.otherwise = difference_before(state_.facts.rank, state_.facts.rank_of(world_peer), before),
        .world_peer = world_peer,
        .question = std::move(about_earlier)});
}

StallAnswer::State CallAgreement::compare_calls(int world_peer, const StallProbe& probe) {
  const int peer = state_.facts.rank_of(world_peer);
  if (probe.about == StallProbe::About::this_call) {
    const Signature* const own = state_.calls.find(probe.signature.sequence);
    if (own == nullptr) return StallAnswer::State::forgotten;
    if (own->is_same_call(probe.signature)) return StallAnswer::State::agrees;
    failure_.propose(difference_between(
        call_of(*own), {.rank = peer, .signature = probe.signature, .details = probe.details, .site = probe.site}));
    return StallAnswer::State::differs;
  }
  if (const auto difference = first_difference(state_.calls, probe.calls)) {
    report_mismatch(difference->own, difference->theirs, world_peer);
    return StallAnswer::State::differs;
  }
  const Comparison comparison = state_.calls.compare(probe.digest);
  if (comparison == Comparison::same || comparison == Comparison::not_yet) return StallAnswer::State::agrees;
  failure_.propose(difference_before(state_.facts.rank, peer, probe.digest.calls));
  return StallAnswer::State::differs;
}

// As long as the peer is there, it will answer.
void CallAgreement::pursue(TimePoint now) {
  if (!difference_ || failure_.is_certain()) return;
  if (difference_->is_certain) running_.stop();
  if (!difference_->pursue(state_.runtime->control(), now)) failure_.propose(difference_->otherwise);
}

bool CallAgreement::settle(TimePoint now) {
  pursue(now);
  if (!difference_ || !difference_->is_certain) return false;
  if (now >= running_.earliest_deadline()) failure_.propose(difference_->otherwise);
  return true;
}

void CallAgreement::take_answer(int world_peer, StallAnswer::State state) {
  if (!difference_ || difference_->world_peer != world_peer) return;
  if (state == StallAnswer::State::agrees && !difference_->is_certain) {
    difference_.reset();
  } else if (state != StallAnswer::State::differs) {
    failure_.propose(difference_->otherwise);
  }
}

bool CallAgreement::is_naming_difference(TimePoint now) {
  return difference_ && !failure_.is_certain() && difference_->pursue(state_.runtime->control(), now);
}

control::Position CallAgreement::position() const {
  // A rank that does not let its calls end (in the simulator ranks have no thread to wait with) has taken part in those before them.
  const CallQueue& under_way = running_.collectives();
  const bool all_end = state_.runtime->parts().threaded || under_way.empty();
  CallDigest digest =
      state_.calls.digest_at(all_end ? state_.calls.next() : under_way.oldest()->request.signature.sequence);
  if (failure_.is_broken()) digest.is_known = false;
  return position_in(state_.facts, digest);
}

void CallAgreement::member_left(int world_rank) {
  if (const auto position = state_.runtime->directory().position_when_leaving(world_rank, state_.facts.id))
    compare_with_leaver(world_rank, *position);
}

void CallAgreement::compare_with_leaver(int world_rank, const control::Position& theirs) {
  if (failure_.is_certain() || theirs.epoch != state_.facts.epoch || !theirs.is_known) return;
  leavers_.insert_or_assign(world_rank, theirs);
  if (theirs.calls > state_.calls.next()) return;  // compared when this rank has come so far
  if (state_.calls.compare(digest_of(theirs)) == Comparison::different) return send_calls(world_rank, theirs.calls);
  // A root sends and returns: the call may be over here, and those it was for have left.
  const Signature* const missed = state_.calls.find(theirs.calls);
  if (missed != nullptr && running_.find(theirs.calls) == nullptr) report_left(world_rank, theirs.calls);
}

void CallAgreement::report_left(int world_rank, std::uint64_t sequence) {
  const Signature* const missed = state_.calls.find(sequence);
  const std::string call = missed != nullptr ? "the call " + describe(*missed) : "the call";
  failure_.propose({.kind = control::Cause::Kind::lost,
                    .culprits = {world_rank},
                    .sequence = sequence,
                    .text = fmt::format("{} left the job without taking part in {}; every rank of a group must make "
                                        "the same calls in the same order",
                                        state_.names.rank(state_.facts.rank_of(world_rank)), call)});
}

bool CallAgreement::report_leaver(const Operation& operation, int peer) {
  Runtime& runtime = *state_.runtime;
  const std::uint64_t sequence = operation.request.signature.sequence;
  const std::string call = state_.names.call(operation), leaver = state_.names.rank(state_.facts.rank_of(peer));
  const auto position = runtime.directory().position_when_leaving(peer, state_.facts.id);
  if (!position || !position->is_known || position->calls <= sequence) {
    report_left(peer, sequence);
  } else if (runtime.directory().has_lost_link(peer)) {
    if (runtime.control().is_accused(peer)) return false;
    failure_.propose(
        {.kind = control::Cause::Kind::lost,
         .culprits = {peer},
         .sequence = sequence,
         .text = fmt::format("{} failed on rank {}: {} took part and left the job, but the link to it broke "
                             "before everything had arrived ({})",
                             call, state_.facts.rank, leaver, operation.failing)});
  } else {  // everything that it sent has arrived, and it says that it took part in the call of this number
    failure_.propose(
        {.kind = control::Cause::Kind::mismatch,
         .culprits = {},
         .sequence = sequence,
         .text = fmt::format("rank {} called {}, but {} made another call in its place: it has left the job after "
                             "{} calls of the group, and did not send what belongs to this one ({}); every rank of a "
                             "group must make the same calls in the same order",
                             state_.facts.rank, call, leaver, position->calls, operation.failing)});
  }
  return true;
}

std::optional<OpenDifference> CallAgreement::what_differed() const {
  if (failure_.is_broken()) return std::nullopt;
  if (const control::Cause* const cause = failure_.proposed()) {  // the members have yet to agree on it
    const bool is_difference =
        cause->kind == control::Cause::Kind::mismatch || cause->kind == control::Cause::Kind::lost;
    return is_difference ? std::optional(OpenDifference{.otherwise = *cause}) : std::nullopt;
  }
  if (difference_) return difference_;
  for (const auto& [world_rank, position] : leavers_) {
    const int peer = state_.facts.rank_of(world_rank);
    const std::uint64_t calls = state_.calls.next();
    if (position.calls != calls)
      return OpenDifference{.otherwise = numbers_differ({peer, position.calls}, {state_.facts.rank, calls})};
    if (state_.calls.compare(digest_of(position)) == Comparison::different)
      return OpenDifference{.otherwise = difference_before(state_.facts.rank, peer, calls)};
  }
  return std::nullopt;
}

}  // namespace tutti
