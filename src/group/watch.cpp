// watch.cpp: deadlines and stalls: who is asked about a call that takes long, who says so, and in which words.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/environment.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr Duration probe_after = 100ms;  // a call that waits longer asks those it waits for
constexpr Duration probe_again_max = 1s;
constexpr Duration follow_after = 5s;  // … and then those that these wait for, in turn
// At a time: all ranks may wait, on a machine that is busy enough already. Who is about to be blamed is asked in any case.
constexpr std::size_t probes_max = 8, last_probes_max = 128;
constexpr int few_ranks =
    32;  // so few are all asked at once, whatever they wait for: that costs little, and is known soonest
// So long before a deadline everybody is asked again: who is blamed must still be late.
constexpr Duration last_question_min = 150ms, last_question_max = 1s;
constexpr Duration answer_stale = 2500ms;  // an answer older than this counts as none
constexpr Duration agreement_limit = 10s;  // a group breaks by then, whether or not the others can be heard

Duration until_next_probe(Duration waited) { return std::clamp(waited / 2, probe_after, probe_again_max); }

}  // namespace

std::uint64_t GroupCore::stall_key(const Operation& operation) {
  return operation.is_message() ? StallProbe::message_call : operation.request.signature.sequence;
}

Progress GroupCore::progress_of(const Operation& operation) const {
  if (operation.call) return operation.call->progress();
  if (!operation.is_message()) return {.how = "not begun", .step_count = 1};
  Progress where{.how = fmt::format("message over {}", runtime_->transport().name()), .step_count = 1};
  if (operation.peer >= 0) where.waiting_for = {operation.peer};
  return where;
}

void GroupCore::look_after(TimePoint now) {
  if (proposed_) {  // the members are agreeing on the cause; should that fail, our own will do
    if (now - proposed_at_ > agreement_limit) break_with(*proposed_);
    return;
  }
  settle_difference(now);
  if (difference_ &&
      difference_->is_certain) {  // nothing ends well any more; the deadline bounds the wait for more words
    if (now >= earliest_deadline_) request_abort(difference_->otherwise);
    return;
  }
  if (failing_count_ > 0 || somebody_left_ || now >= earliest_deadline_) look_at_all(now);
  if (!proposed_ && !collectives_.empty()) watch_oldest(now);
  if (!proposed_ && !messages_.empty()) watch_messages(now);
  looked_at_ = now;
}

void GroupCore::look_at_all(TimePoint now) {
  TimePoint earliest = TimePoint::max();
  const auto is_well = [&](Operation& operation) {
    if (operation.ended()) return true;
    if (operation.failing.empty() || !report_failing(operation, now)) {
      earliest = std::min(earliest, operation.request.deadline);
      if (now >= operation.request.deadline) {
        time_out(operation, now);
      } else if (somebody_left_ && operation.is_message()) {
        probe(operation, progress_of(operation), probes_max);
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
  const Duration last_question = std::clamp(operation.timeout / 4, last_question_min, last_question_max);
  // Also one that has just become the oldest: it has waited behind others, and its time is over as well.
  const bool last_time = earliest_deadline_ - now < last_question && now - operation.probed_at >= last_question;
  const bool is_time = waited >= probe_after && now - operation.probed_at >= until_next_probe(waited);
  if (!is_time && !last_time) return;
  operation.probed_at = now;
  const Progress where = progress_of(operation);
  probe(operation, where, last_time ? last_probes_max : probes_max);
  if (!proposed_) consider_warning(operation, now);
}

// The one that was started first stands for all; how long it has been the first, counts. To find it takes a look at each of them:
// not often.
void GroupCore::watch_messages(TimePoint now) {
  if (now < next_message_watch_) return;
  const auto& all = messages_.all();
  Operation& operation = **std::ranges::min_element(all, {}, [](const auto& message) { return message->started_at; });
  if (watched_message_ != operation.started_at) {
    watched_message_ = operation.started_at;
    message_watched_since_ = std::max(operation.started_at, messages_looked_at_);
  }
  messages_looked_at_ = now;
  const Duration waited = now - message_watched_since_;
  next_message_watch_ = now + until_next_probe(waited);
  if (waited < probe_after) return;
  probe(operation, progress_of(operation), probes_max);
  if (!proposed_) consider_warning(operation, now);
}

// To compare signatures it is enough to ask those whom one waits for. Who is to blame is asked when it matters: before a report,
// and before a deadline.
bool GroupCore::follows_chains(const Operation& operation) const {
  if (facts_.size <= few_ranks) return true;
  const TimePoint now = runtime_->clock().now();
  const Duration after = std::min({follow_after, operation.timeout / 2, runtime_->stall_warning() / 2});
  return now - operation.started_at >= after;
}

// In turn: what one of them does not know, another one will. Each rank begins elsewhere.
void GroupCore::ask_some(std::vector<int> ranks, Operation& operation, std::size_t limit) {
  std::erase(ranks, facts_.rank);
  if (facts_.size <= few_ranks) limit = few_ranks;
  const std::size_t first =
      ranks.size() > limit ? operation.probe_count * limit + static_cast<std::size_t>(facts_.rank) : 0;
  ++operation.probe_count;
  for (std::size_t i = 0; i < std::min(ranks.size(), limit); ++i) ask(ranks[(first + i) % ranks.size()], operation);
}

void GroupCore::ask(int rank, const Operation& operation) {
  if (rank == facts_.rank) return;
  Signature signature = operation.request.signature;
  signature.sequence = stall_key(operation);
  const auto bytes =
      encode(StallProbe{.group = facts_.id, .epoch = facts_.epoch, .signature = signature, .site = operation.site});
  stalls_.note_asked(rank, signature.sequence, runtime_->clock().now());
  runtime_->control().probe(facts_.world_of[static_cast<std::size_t>(rank)], bytes);
}

// Of all that wait in the call, the lowest rank says so. Whether a lower one waits, it is asked; those before it that have not
// entered the call, have left it or do not answer do not say anything.
bool GroupCore::speaks_for_all(const Operation& operation, TimePoint now) {
  constexpr int asked_at_once = 4;
  int asked = 0;
  for (int rank = 0; rank < facts_.rank && asked < asked_at_once; ++rank) {
    switch (stalls_.standing(rank, stall_key(operation), now, answer_stale)) {
      case StallMap::Standing::waits: return false;
      case StallMap::Standing::does_not_wait: break;
      case StallMap::Standing::unknown:
        stalls_.note_question(rank, stall_key(operation), now);
        ask(rank, operation);
        [[fallthrough]];
      case StallMap::Standing::asked: ++asked; break;
    }
  }
  return asked == 0;
}

void GroupCore::consider_warning(Operation& operation, TimePoint now) {
  const TimePoint since = operation.is_message() ? message_watched_since_ : watched_since_;
  if (operation.reported || now - since < runtime_->stall_warning() || !speaks_for_all(operation, now)) return;
  operation.reported = true;
  runtime_->log().warn("{}", stall_report(operation, now, progress_of(operation),
                                          "has waited for " + format_duration(runtime_->stall_warning())));
}

StallAnswer GroupCore::answer_probe(int world_rank, const StallProbe& probe) {
  const std::uint64_t sequence = probe.signature.sequence;
  StallAnswer answer{.group = facts_.id, .sequence = sequence, .next_sequence = calls_.next()};
  if (probe.about != StallProbe::About::waiting) {
    answer.state = compare_calls(world_rank, probe);
    return answer;
  }
  const Operation* const operation = running(sequence);
  answer.elsewhere = runtime_->what_is_awaited(operation);
  if (sequence == StallProbe::message_call) {
    answer.state = answer.elsewhere.empty() ? StallAnswer::State::not_there_yet : StallAnswer::State::waiting;
    return answer;
  }
  const Signature* const own = calls_.find(sequence);
  stalls_.note_site(rank_of(world_rank), sequence, probe.site);
  if (sequence >= calls_.next()) {
    answer.state = StallAnswer::State::not_there_yet;
  } else if (own != nullptr && *own != probe.signature) {
    report_mismatch(*own, probe.signature, world_rank);
    answer.state = StallAnswer::State::waiting;
  } else if (operation != nullptr) {
    // One that has not been begun is kept by the oldest.
    const Progress where = progress_of(operation->call ? *operation : *collectives_.oldest());
    answer.state = StallAnswer::State::waiting;
    answer.step = operation->call ? where.step : 0;
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
  using State = StallAnswer::State;
  const bool is_about_difference = answer.state >= State::differs;
  if (is_about_difference || answer.state == State::unknown_group) take_word_on_difference(world_rank, answer.state);
  if (is_about_difference) return;
  Operation* const operation = running(answer.sequence);
  if (rank < 0 || (operation == nullptr && answer.sequence != StallProbe::message_call)) return;
  const TimePoint now = runtime_->clock().now();
  stalls_.note(rank, answer, now);
  if (operation == nullptr) return;
  // Whom it waits for is asked next: at once, not after another interval.
  if (answer.state == StallAnswer::State::waiting && follows_chains(*operation)) {
    std::size_t asked = 0;
    for (const int next : answer.waiting_for) {
      const bool valid = next >= 0 && next < facts_.size && (facts_.size <= few_ranks || asked++ < probes_max);
      if (valid && !stalls_.answered(next, answer.sequence, now - probe_after)) ask(next, *operation);
    }
  }
  if (watched_sequence_ == answer.sequence) consider_warning(*operation, now);
}

std::string GroupCore::stall_report(const Operation& operation, TimePoint now, const Progress& where,
                                    std::string_view what) const {
  const Operation& holds_up = operation.is_message() || operation.call ? operation : *collectives_.oldest();
  if (&holds_up != &operation) {
    return fmt::format("{}{} {} on rank {} behind {}", call_text(operation), at_site(operation.site), what, facts_.rank,
                       stall_report(holds_up, now, progress_of(holds_up), "which waits"));
  }
  const std::uint64_t key = stall_key(operation);
  const auto ends = stalls_.ends({facts_.rank, where.waiting_for, key}, now, answer_stale);
  const std::string missing = ends.empty() ? "any rank to send"
                                           : stalls_.describe_all(ends, key, {now, answer_stale},
                                                                  [this](int rank) { return name_of_rank(rank); });
  const std::string step = operation.is_message() ? "" : fmt::format(" at step {} of {}", where.step, where.step_count);
  const bool says_group = operation.is_message() || facts_.id == runtime_->world_group();
  return fmt::format("{}{}{} ({}) {} on rank {}{}, waiting for {}", call_text(operation),
                     says_group ? "" : " in " + name(), at_site(operation.site), where.how, what, facts_.rank, step,
                     missing);
}

void GroupCore::time_out(Operation& operation, TimePoint now) {
  const Progress where = progress_of(operation.is_message() || operation.call ? operation : *collectives_.oldest());
  std::vector<int> culprits;
  for (const int rank : stalls_.ends({facts_.rank, where.waiting_for, stall_key(operation)}, now, answer_stale)) {
    culprits.push_back(facts_.world_of[static_cast<std::size_t>(rank)]);
  }
  request_abort({.kind = control::Cause::Kind::timeout,
                 .culprits = culprits,
                 .sequence = operation.request.signature.sequence,
                 .text = stall_report(operation, now, where,
                                      fmt::format("timed out after {}", format_duration(operation.timeout)))});
}

}  // namespace tutti
