// failure.cpp: what breaks a group, and how its members hear of it: mismatches, stalls, deadlines, lost and leaving peers.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

/// " at train.py:41", where that is known.
std::string at(std::string_view site) { return site.empty() ? std::string() : fmt::format(" at {}", site); }

constexpr Duration probe_after = 100ms;  // a call that waits longer asks those it waits for
constexpr Duration probe_again_max = 5s;
constexpr Duration follow_after = 5s;   // … and then those that these wait for, in turn
constexpr std::size_t probes_max = 8;   // at a time: all ranks may wait, on a machine that is busy enough already
constexpr Duration report_after = 10s;  // a call that waits longer says so, once
// So long before a deadline everybody is asked again: who is blamed must still be late.
constexpr Duration last_question_min = 150ms, last_question_max = 1s;
constexpr Duration answer_stale = 2500ms;  // an answer older than this counts as none
constexpr Duration verdict_wait = 500ms;   // a broken transfer waits this long for the control network's verdict
constexpr Duration agreement_limit = 10s;  // a group breaks by then, whether or not the others can be heard

}  // namespace

void GroupCore::request_abort(const control::Cause& cause) {
  if (broken_ || proposed_) return;
  proposed_ = cause;
  proposed_at_ = runtime_->clock().now();
  if (facts_.size == 1) {
    break_with(cause);
  } else {
    runtime_->control().abort(facts_.id, facts_.epoch, cause);
  }
}

void GroupCore::abort(std::string_view reason) {
  const auto guard = runtime_->lock();
  check_usable();
  request_abort({.kind = control::Cause::Kind::aborted,
                 .blamed = {facts_.world_of[static_cast<std::size_t>(facts_.rank)]},
                 .sequence = calls_.next(),
                 .text = fmt::format("rank {} aborted the group: {}", facts_.rank, reason)});
}

void GroupCore::break_with(const control::Cause& cause) {
  if (broken_) return;
  broken_ = cause;
  std::vector<std::shared_ptr<Operation>> under_way = messages_.all();
  for (auto place = collectives_.first(); place < collectives_.end(); ++place)
    under_way.push_back(collectives_.at(place));
  for (const auto& operation : under_way) end(*operation, error_for(cause, &operation->request.signature));
  early_.clear();
  refusals_.clear();
  runtime_->transport().forget(facts_.id, ~std::uint64_t{0});
}

std::exception_ptr GroupCore::error_for(const control::Cause& cause, const Signature* call) const {
  const std::string what = call != nullptr ? fmt::format("{}: {}: {}", who(), tutti::describe(*call), cause.text)
                                           : fmt::format("{}: the group is broken: {}", who(), cause.text);
  switch (cause.kind) {
    case control::Cause::Kind::mismatch: return std::make_exception_ptr(Mismatch(what));
    case control::Cause::Kind::timeout: return std::make_exception_ptr(Timeout(what));
    case control::Cause::Kind::lost: {
      const int rank = cause.blamed.empty() ? -1 : cause.blamed.front();
      return std::make_exception_ptr(PeerLost(what, rank, runtime_->host_of(rank), cause.text));
    }
    case control::Cause::Kind::aborted:
    case control::Cause::Kind::refused: return std::make_exception_ptr(Aborted(what));
  }
  return std::make_exception_ptr(Aborted(what));
}

// Nobody can wait for them any more, and what they would receive is of no use to a rank that leaves.
void GroupCore::withdraw_receives() {
  const auto all = messages_.all();
  for (const auto& operation : all) {
    if (operation->request.verb == Verb::recv && !operation->ended())
      end(*operation, std::make_exception_ptr(
                          Aborted(fmt::format("{}: the receive was withdrawn: this process leaves the job", who()))));
  }
}

Whereabouts GroupCore::whereabouts(const Operation& operation) const {
  if (operation.task != nullptr) return operation.task->whereabouts();
  Whereabouts where{.how = fmt::format("message over {}", runtime_->transport().name()), .step_count = 1};
  if (operation.is_message() && operation.peer >= 0) where.waiting_for = {operation.peer};
  return where;
}

void GroupCore::look_after(TimePoint now) {
  if (proposed_) {  // the members are agreeing on the cause; should that fail, our own will do
    if (now - proposed_at_ > agreement_limit) break_with(*proposed_);
    return;
  }
  settle_difference(now);
  if (doomed_count_ > 0 || somebody_left_ || now >= earliest_deadline_) look_at_all(now);
  if (!proposed_ && !collectives_.empty()) watch_oldest(now);
  looked_at_ = now;
}

void GroupCore::look_at_all(TimePoint now) {
  TimePoint earliest = TimePoint::max();
  const auto is_well = [&](Operation& operation) {
    if (operation.ended()) return true;
    if (operation.doomed.empty() || !report_doomed(operation, now)) {
      earliest = std::min(earliest, operation.request.deadline);
      if (now >= operation.request.deadline) {
        time_out(operation, now);
      } else if (somebody_left_ && operation.is_message()) {
        probe(operation, whereabouts(operation));
      }
    }
    return !proposed_ && !broken_;
  };
  for (auto place = collectives_.first(); place < collectives_.end(); ++place) {
    if (!is_well(*collectives_.at(place))) return;
  }
  for (const auto& message : messages_.all()) {
    if (!is_well(*message)) return;
  }
  earliest_deadline_ = earliest;
}

// Those behind it wait for it, here or elsewhere: to ask about them would say nothing more.
void GroupCore::watch_oldest(TimePoint now) {
  Operation& operation = *collectives_.oldest();
  if (watched_sequence_ != operation.request.signature.sequence) {
    watched_sequence_ = operation.request.signature.sequence;
    watched_since_ = std::max(operation.started_at, looked_at_);
  }
  const Duration waited = now - watched_since_;
  if (waited < probe_after) return;
  const Duration again = std::clamp(waited / 2, probe_after, probe_again_max);
  const Duration last_question = std::clamp(operation.timeout / 4, last_question_min, last_question_max);
  const bool last_time = earliest_deadline_ - now < last_question && now - operation.probed_at >= last_question;
  if (now - operation.probed_at < again && !last_time) return;
  operation.probed_at = now;
  const Whereabouts where = whereabouts(operation);
  probe(operation, where);
  if (waited >= report_after && !operation.reported) {
    operation.reported = true;
    runtime_->log().warn(
        "{}", stall_report(operation, now, where, fmt::format("has waited for {}", format_duration(report_after))));
  }
}

// A transfer failed. As a rule the control network says why; if not, the group breaks for what is known here.
bool GroupCore::report_doomed(const Operation& operation, TimePoint now) {
  const int peer = operation.doomed_peer;
  const std::uint64_t sequence = operation.request.signature.sequence;
  if (!operation.does_not_fit && peer >= 0 && runtime_->has_left(peer)) {
    report_left(peer, sequence);
    return true;
  }
  if (now - operation.doomed_at <= verdict_wait) return false;
  const std::string text = fmt::format("{}: {}", who(), operation.doomed);
  if (operation.does_not_fit) {
    request_abort({.kind = control::Cause::Kind::mismatch, .blamed = {}, .sequence = sequence, .text = text});
  } else if (runtime_->is_unreachable(peer)) {
    request_abort({.kind = control::Cause::Kind::lost, .blamed = {peer}, .sequence = sequence, .text = text});
  }
  return proposed_.has_value();
}

// To compare signatures it is enough to ask those whom one waits for. Who is to blame is asked when it matters: before a report,
// and before a deadline.
bool GroupCore::follows_chains(const Operation& operation) const {
  const TimePoint now = runtime_->clock().now();
  return now - operation.started_at >= std::min(follow_after, operation.timeout / 2);
}

void GroupCore::probe(Operation& operation, const Whereabouts& where) {
  for (const int rank : where.waiting_for) {
    const int world = facts_.world_of[static_cast<std::size_t>(rank)];
    if (!runtime_->has_left(world)) continue;
    if (operation.is_message()) {
      // The transport knows when nothing more comes from it, if it has a link to it.
      runtime_->transport().attach(world);
      continue;
    }
    const auto position = runtime_->position_when_leaving(world, facts_.id);
    if (position && operation.request.signature.sequence >= position->calls) {
      report_left(world, operation.request.signature.sequence);
      return;
    }
  }
  if (operation.is_message()) return;  // a message may come at any time: nothing to compare
  const auto bytes = encode(StallProbe{
      .group = facts_.id, .epoch = facts_.epoch, .signature = operation.request.signature, .site = operation.site});
  std::vector<int> asked = where.waiting_for;
  if (follows_chains(operation)) asked = stalls_.involved(asked, operation.request.signature.sequence);
  std::erase(asked, facts_.rank);
  // In turn: what one of them does not know, another one will. Each rank begins elsewhere.
  const std::size_t first =
      asked.size() > probes_max ? operation.probe_count * probes_max + static_cast<std::size_t>(facts_.rank) : 0;
  ++operation.probe_count;
  for (std::size_t i = 0; i < std::min(asked.size(), probes_max); ++i) {
    const int rank = asked[(first + i) % asked.size()];
    runtime_->control().probe(facts_.world_of[static_cast<std::size_t>(rank)], bytes);
  }
}

void GroupCore::report_left(int world_rank, std::uint64_t sequence) {
  const Signature* const missed = calls_.find(sequence);
  const std::string call = missed != nullptr ? "the call " + describe(*missed) : "the call";
  request_abort(
      {.kind = control::Cause::Kind::lost,
       .blamed = {world_rank},
       .sequence = sequence,
       .text = fmt::format("{} left the job without taking part in {}", name_of_rank(rank_of(world_rank)), call)});
}

StallAnswer GroupCore::answer_probe(int world_rank, const StallProbe& probe) {
  StallAnswer answer{.group = facts_.id, .sequence = probe.signature.sequence, .next_sequence = calls_.next()};
  if (!probe.calls.empty()) {
    compare_calls(world_rank, probe.calls);
    return answer;
  }
  const Signature* const own = calls_.find(probe.signature.sequence);
  stalls_.note_site(rank_of(world_rank), probe.signature.sequence, probe.site);
  if (probe.signature.sequence >= calls_.next()) {
    answer.state = StallAnswer::State::not_there_yet;
  } else if (own != nullptr && *own != probe.signature) {
    report_mismatch(*own, probe.signature, world_rank);
    answer.state = StallAnswer::State::waiting;
  } else if (const Operation* operation = running(probe.signature.sequence)) {
    const Whereabouts where = whereabouts(*operation);
    answer.state = StallAnswer::State::waiting;
    answer.step = where.step;
    answer.step_count = where.step_count;
    answer.waiting_for = where.waiting_for;
    answer.site = operation->site;
  } else {
    answer.state = StallAnswer::State::past_it;
  }
  return answer;
}

void GroupCore::take_answer(int world_rank, const StallAnswer& answer) {
  const int rank = rank_of(world_rank);
  const Operation* const operation = running(answer.sequence);
  if (rank < 0 || operation == nullptr) return;
  const TimePoint now = runtime_->clock().now();
  stalls_.note(rank, answer, now);
  // Whom it waits for is asked next: at once, not after another interval.
  if (answer.state == StallAnswer::State::waiting && follows_chains(*operation)) {
    const auto bytes = encode(StallProbe{
        .group = facts_.id, .epoch = facts_.epoch, .signature = operation->request.signature, .site = operation->site});
    std::size_t asked = 0;
    for (const int next : answer.waiting_for) {
      const bool valid = next >= 0 && next < facts_.size && next != facts_.rank && asked++ < probes_max;
      if (valid && !stalls_.answered(next, answer.sequence, now - probe_after)) {
        runtime_->control().probe(facts_.world_of[static_cast<std::size_t>(next)], bytes);
      }
    }
  }
}

std::string GroupCore::stall_report(const Operation& operation, TimePoint now, const Whereabouts& where,
                                    std::string_view what) const {
  const std::uint64_t sequence = operation.request.signature.sequence;
  std::string missing;
  for (const int rank : stalls_.ends({facts_.rank, where.waiting_for, sequence}, now, answer_stale)) {
    const std::string how =
        operation.is_message() ? "" : ", which " + stalls_.describe(rank, sequence, now, answer_stale);
    missing += fmt::format("{}{}{}", missing.empty() ? "waiting for " : ", ", name_of_rank(rank), how);
  }
  if (missing.empty()) missing = "waiting for any rank to send";
  return fmt::format("{}: {}{} ({}) {} at step {} of {}, {}", who(), tutti::describe(operation.request.signature),
                     at(operation.site), where.how, what, where.step, where.step_count, missing);
}

void GroupCore::time_out(Operation& operation, TimePoint now) {
  const Whereabouts where = whereabouts(operation);
  const std::uint64_t sequence = operation.request.signature.sequence;
  std::vector<int> blamed;
  for (const int rank : stalls_.ends({facts_.rank, where.waiting_for, sequence}, now, answer_stale)) {
    blamed.push_back(facts_.world_of[static_cast<std::size_t>(rank)]);
  }
  request_abort({.kind = control::Cause::Kind::timeout,
                 .blamed = blamed,
                 .sequence = sequence,
                 .text = stall_report(operation, now, where,
                                      fmt::format("timed out after {}", format_duration(operation.timeout)))});
}

}  // namespace tutti
