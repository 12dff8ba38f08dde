// verdicts.cpp: the rule that turns facts into a decision, and which rank decides.
// SPDX-License-Identifier: Apache-2.0
#include "control/verdicts.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::control {

Verdicts::Verdicts(int rank, int size, const VerdictTimes& times) : rank_(rank), times_(times) {
  if (size == 1) times_.settle = Duration(0);  // nobody else could know anything
}

void Verdicts::suspect(TimePoint now, int accuser, const Suspect& suspect) {
  const int accused = suspect.accused;
  if (accuser == accused || removed_.contains(accuser) || removed_.contains(accused)) return;
  Suspicion& suspicion = suspicions_[accused];
  if (suspicion.accusers.empty()) suspicion.since = now;
  suspicion.accusers.emplace(accuser, suspect.reason);
  suspicion.is_witnessed |= suspect.is_witness;
  if (suspect.is_certain && !suspicion.end) suspicion.end = suspect.reason;
  signs_[accuser].at = now;  // who accuses, lives
}

void Verdicts::alive(TimePoint now, int rank, Duration away) {
  Sign& sign = signs_[rank];
  sign.away = now - sign.answered <= times_.settle ? std::max(sign.away, away) : away;
  sign.at = sign.answered = now;
}

void Verdicts::propose(TimePoint now, int origin, Proposal proposal) {
  const Group group{proposal.group, proposal.epoch};
  if (settled_.contains(group)) return;
  const auto [entry, first] = aborts_.try_emplace(group, Abort{now, origin, proposal.cause});
  Abort& abort = entry->second;
  if (first || !comes_first(proposal.cause, origin, abort.cause, abort.origin)) return;
  abort.origin = origin;
  abort.cause = std::move(proposal.cause);
}

void Verdicts::remove(int rank) {
  removed_.insert(rank);
  suspicions_.erase(rank);
  for (auto& [accused, suspicion] : suspicions_) suspicion.accusers.erase(rank);
  std::erase_if(suspicions_, [](const auto& entry) { return entry.second.accusers.empty(); });
}

bool Verdicts::settle(std::uint64_t group, std::uint32_t epoch) {
  aborts_.erase({group, epoch});
  return settled_.insert({group, epoch}).second;
}

bool Verdicts::proposed(std::uint64_t group, std::uint32_t epoch) const {
  return aborts_.contains({group, epoch}) || settled_.contains({group, epoch});
}

// A rank may have answered shortly before the accusation arrived here: floods of two origins have no common order. An
// earlier message about something else proves nothing: the rank may have died since.
const Verdicts::Sign* Verdicts::answer(int accused, const Suspicion& suspicion) const {
  const auto sign = signs_.find(accused);
  if (sign == signs_.end()) return nullptr;
  const bool answered = sign->second.answered + times_.settle >= suspicion.since;
  return answered || sign->second.at >= suspicion.since ? &sign->second : nullptr;
}

// It may have answered, and died before it decided.
TimePoint Verdicts::passed_over_at(int accused, const Suspicion& suspicion) const {
  if (suspicion.end) return suspicion.since;
  const auto sign = signs_.find(accused);
  const TimePoint last = std::max(suspicion.since, sign == signs_.end() ? TimePoint{} : sign->second.at);
  return last + times_.settle + times_.takeover;
}

bool Verdicts::passed_over(int rank, TimePoint now) const {
  if (removed_.contains(rank) || retired_.contains(rank)) return true;
  const auto suspicion = suspicions_.find(rank);
  if (suspicion == suspicions_.end() || !suspicion->second.is_witnessed) return false;
  return now >= passed_over_at(rank, suspicion->second);
}

TimePoint Verdicts::ripe_at(int accused, const Suspicion& suspicion) const {
  if (suspicion.end) return suspicion.since;
  const bool may_have_ended = answer(accused, suspicion) == nullptr;
  return suspicion.since + (may_have_ended ? std::max(times_.settle, times_.launcher_word) : times_.settle);
}

bool Verdicts::decides(TimePoint now) const {
  if (retired_.contains(rank_)) return false;
  for (int lower = 0; lower < rank_; ++lower) {
    if (!passed_over(lower, now)) return false;
  }
  return true;
}

Lost Verdicts::judge(int accused, const Suspicion& suspicion) const {
  const auto& [accuser, reason] = *suspicion.accusers.begin();
  const Sign* const sign = answer(accused, suspicion);
  Cause cause{.kind = Cause::Kind::lost, .culprits = {accused}, .sequence = 0, .text = {}};
  if (suspicion.end) {
    cause.text = fmt::format("rank {} is lost: {}", accused, *suspicion.end);
    return {accused, std::move(cause)};
  }
  if (sign == nullptr) {
    cause.text = fmt::format("rank {} is lost: {} (noticed by rank {})", accused, reason, accuser);
    return {accused, std::move(cause)};
  }
  if (sign->away > Duration(0)) {
    cause.text = fmt::format("rank {} is lost: it was stopped for {:.1f} s, and rank {} gave it up: {}", accused,
                             std::chrono::duration<double>(sign->away).count(), accuser, reason);
    return {accused, std::move(cause)};
  }
  if (suspicion.accusers.size() > 1) {
    std::vector<int> accusers;
    for (const auto& entry : suspicion.accusers) accusers.push_back(entry.first);
    cause.text = fmt::format("rank {} is lost: it still runs, but ranks {} cannot reach it: {}", accused,
                             fmt::join(accusers, ", "), reason);
    return {accused, std::move(cause)};
  }
  const auto [lower, higher] = std::minmax(accuser, accused);
  cause.culprits = {higher};
  cause.text = fmt::format(
      "rank {} is lost: the link between ranks {} and {} is cut, and the higher of the two is given up (rank {}: {})",
      higher, lower, higher, accuser, reason);
  return {higher, std::move(cause)};
}

std::optional<Verdicts::Decision> Verdicts::decide(TimePoint now) const {
  if (suspicions_.empty() && aborts_.empty()) return {};
  const bool for_all = decides(now);
  for (const auto& [accused, suspicion] : suspicions_) {
    if (now < ripe_at(accused, suspicion)) continue;
    // No accuser had a link to the accused: it may have left, which ranks with a link to it will report.
    const bool is_certain = suspicion.is_witnessed || answer(accused, suspicion) != nullptr;
    if (!is_certain && now < suspicion.since + times_.backstop) continue;
    if (for_all || now >= suspicion.since + times_.backstop) return Decision{judge(accused, suspicion), for_all};
  }
  for (const auto& [group, abort] : aborts_) {
    // A loss that is about to be decided explains more than the proposals that it caused.
    const bool wait_for_loss =
        !suspicions_.empty() && now < abort.since + std::max(times_.patience / 2, times_.launcher_word);
    const bool ripe = for_all && !wait_for_loss && now >= abort.since + times_.settle;
    if (ripe || now >= abort.since + times_.launcher_word + times_.patience)
      // If the decider is silent, the rank with the winning cause tells the others, so that a rank that comes back
      // later learns it.
      return Decision{Broken{group.first, group.second, abort.cause}, for_all || abort.origin == rank_};
  }
  return {};
}

TimePoint Verdicts::next_timer(TimePoint now) const {
  TimePoint next = TimePoint::max();
  const auto consider = [&](TimePoint time) {
    if (time > now) next = std::min(next, time);
  };
  for (const auto& [accused, suspicion] : suspicions_) {
    consider(ripe_at(accused, suspicion));
    consider(passed_over_at(accused, suspicion));
    consider(suspicion.since + times_.backstop);
  }
  for (const auto& [group, abort] : aborts_) {
    consider(abort.since + times_.settle);
    consider(abort.since + std::max(times_.patience / 2, times_.launcher_word));
    consider(abort.since + times_.launcher_word + times_.patience);
  }
  return next;
}

}  // namespace tutti::control
