// stall_watch.cpp: deadlines and stalls.
// SPDX-License-Identifier: Apache-2.0
#include "group/stall_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "group/question.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

constexpr Duration probe_after = question_interval;  // a call that waits longer asks those it waits for
constexpr Duration probe_again_max = 1s;
constexpr Duration follow_after = 5s;  // … and then those that these wait for, in turn
// Questions at a time: all ranks may wait, on a machine that is busy already. A rank that is about to be blamed is asked in any case.
constexpr std::size_t probes_max = 8, last_probes_max = 128;
// Up to so many ranks are all asked at once, whatever they wait for: that costs little, and gives the answer soonest.
constexpr int few_ranks = 32;
// So long before a deadline all are asked again: a rank that is blamed must still be late.
constexpr Duration last_question_min = 150ms, last_question_max = 1s;
constexpr Duration answer_stale = 2500ms;  // an answer older than this counts as none

Duration until_next_probe(Duration waited) { return std::clamp(waited / 2, probe_after, probe_again_max); }

}  // namespace

Progress StallWatch::progress_of(const Operation& operation) const {
  if (operation.call) return operation.call->progress();
  if (!operation.is_message()) return {.how = "not begun", .step_count = 1};
  Progress where{.how = fmt::format("message over {}", state_.runtime->transport().name()), .step_count = 1};
  if (operation.peer >= 0) where.waiting_for = {operation.peer};
  return where;
}

StallMap::Wait StallWatch::wait_of(const Operation& operation, const Progress& where) const {
  return {.self = state_.facts.rank,
          .waiting_for = where.waiting_for,
          .sequence = stall_key(operation),
          .stage = where.stage,
          .step = where.step,
          .step_count = where.step_count};
}

const Operation& StallWatch::what_holds_up(const Operation& operation) const {
  return operation.is_message() || operation.call ? operation : *running_.collectives().oldest();
}

void StallWatch::look(TimePoint now) {
  tell_that_it_came();
  if (running_.has_failing() || somebody_left_ || now >= running_.earliest_deadline()) look_at_all(now);
  if (!failure_.is_certain() && !running_.collectives().empty()) watch_oldest(now);
  if (!failure_.is_certain() && !running_.messages().empty()) watch_messages(now);
  looked_at_ = now;
}

void StallWatch::look_at_all(TimePoint now) {
  TimePoint earliest = TimePoint::max();
  const auto is_well = [&](Operation& operation) {
    if (operation.ended()) return true;
    if (operation.failing.empty() || !failing_.report(operation, now)) {
      earliest = std::min(earliest, operation.request.deadline);
      if (now >= operation.request.deadline) {
        time_out(operation, now);
      } else if (somebody_left_ && operation.is_message()) {
        probe(operation, progress_of(operation), probes_max);
      }
    }
    return !failure_.is_certain();
  };
  const CallQueue& collectives = running_.collectives();
  for (auto place = collectives.first(); place < collectives.end(); ++place) {
    if (!is_well(*collectives.at(place))) return;
  }
  for (const auto& message : std::vector(running_.messages().all())) {  // some end here
    if (!is_well(*message)) return;
  }
  running_.set_earliest_deadline(earliest);
}

// Those behind it wait for it, here or elsewhere: to ask about them would tell nothing more.
void StallWatch::watch_oldest(TimePoint now) {
  Operation& operation = *running_.collectives().oldest();
  if (watched_sequence_ != operation.request.signature.sequence) {
    watched_sequence_ = operation.request.signature.sequence;
    watched_since_ = std::max(operation.started_at, looked_at_);
  }
  const Duration waited = now - watched_since_;
  const Duration last_question = std::clamp(operation.timeout / 4, last_question_min, last_question_max);
  const TimePoint last_time = running_.earliest_deadline() - last_question;
  // Also one that has just become the oldest: it has waited behind others, and its time is over as well.
  const bool is_last_time = now > last_time && operation.probed_at < last_time;
  if (is_last_time || (waited >= probe_after && now - operation.probed_at >= until_next_probe(waited))) {
    operation.probed_at = now;
    probe(operation, progress_of(operation), is_last_time ? last_probes_max : probes_max);
    if (!failure_.is_certain()) consider_warning(operation, now);
    note_stall(operation, now);
  } else if (now > last_time) {
    ask_others(operation, last_time);
  }
}

// A call may move on after the last question, and wait for others than those who were asked. What these said earlier is no longer true.
void StallWatch::ask_others(const Operation& operation, TimePoint since) {
  std::size_t asked = 0;
  for (const int rank : progress_of(operation).waiting_for) {
    if (state_.stalls.was_asked(rank, stall_key(operation), since)) continue;
    ask(state_, rank, operation);
    if (++asked == last_probes_max) return;
  }
}

// The one that was started first stands for all; how long it has been the first, counts. To find it takes a look at each of them:
// not often.
void StallWatch::watch_messages(TimePoint now) {
  if (now < next_message_watch_) return;
  const auto& all = running_.messages().all();
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
  if (!failure_.is_certain()) consider_warning(operation, now);
  note_stall(operation, now);
}

// For those who look from outside (`tutti where`).
void StallWatch::note_stall(const Operation& operation, TimePoint now) const {
  record::Recorder* const recorder = state_.records.recorder();
  if (recorder == nullptr || operation.record == 0 || operation.ended()) return;
  const Progress where = progress_of(what_holds_up(operation));
  recorder->note_stall(operation.record, report(operation, now, "waits"), where.step, where.step_count);
}

void StallWatch::member_left(int world_rank) {
  somebody_left_ = true;
  // Look again soon: the oldest call may wait for the one that left.
  if (!running_.collectives().empty()) running_.collectives().oldest()->probed_at = TimePoint{};
  agreement_.member_left(world_rank);
}

void StallWatch::probe(Operation& operation, const Progress& where, std::size_t limit) {
  Runtime& runtime = *state_.runtime;
  const std::uint64_t sequence = operation.request.signature.sequence;
  for (const int rank : where.waiting_for) {
    const int world = state_.world_rank(rank);
    if (!runtime.directory().has_left(world)) continue;
    if (operation.is_message()) {
      // The transport knows when nothing more comes from it, if it has a link to it.
      runtime.transport().attach(world);
      continue;
    }
    const auto position = runtime.directory().position_when_leaving(world, state_.facts.id);
    if (position && sequence >= position->calls) return agreement_.report_left(world, sequence);
  }
  std::vector<int> asked = where.waiting_for;
  if (follows_chains(operation, runtime.clock().now())) asked = state_.stalls.involved(asked, stall_key(operation));
  ask_some(asked, operation, limit);
}

// To compare signatures it is enough to ask those whom one waits for. Who is to blame is asked when it matters: before a report,
// and before a deadline.
bool StallWatch::follows_chains(const Operation& operation, TimePoint now) const {
  if (state_.facts.size <= few_ranks) return true;
  const Duration after = std::min({follow_after, operation.timeout / 2, state_.runtime->parts().stall_warning / 2});
  return now - operation.started_at >= after;
}

// In turn: what one of them does not know, another one will. Each rank begins elsewhere.
void StallWatch::ask_some(std::vector<int> ranks, Operation& operation, std::size_t limit) {
  std::erase(ranks, state_.facts.rank);
  if (state_.facts.size <= few_ranks) limit = few_ranks;
  const std::size_t first =
      ranks.size() > limit ? operation.probe_count * limit + static_cast<std::size_t>(state_.facts.rank) : 0;
  ++operation.probe_count;
  for (std::size_t i = 0; i < std::min(ranks.size(), limit); ++i)
    ask(state_, ranks[(first + i) % ranks.size()], operation);
}

// The recorder's thread looks up the line, which may take until the program lets it run. A rank that asks again soon gets what it found.
std::string StallWatch::where_the_program_is() {
  record::Recorder* const recorder = state_.records.recorder();
  if (recorder == nullptr || recorder->fixed().answers.load() == 0) return {};
  constexpr Duration fresh = 5s;
  const TimePoint now = state_.runtime->clock().now();
  const bool is_fresh = asked_program_at_ != TimePoint{} && now - asked_program_at_ < fresh;
  asked_program_at_ = now;
  const std::string stack = is_fresh ? recorder->answers().latest() : std::string();
  recorder->answers().ask();
  constexpr std::size_t line_bytes_max = 200;
  return stack.substr(0, std::min(stack.find('\n'), line_bytes_max));
}

StallAnswer StallWatch::answer(int world_rank, const StallProbe& probe, std::string awaited_elsewhere) {
  const std::uint64_t sequence = probe.signature.sequence;
  using State = StallAnswer::State;
  StallAnswer answer{.group = state_.facts.id, .sequence = sequence, .next_sequence = state_.calls.next()};
  if (probe.about != StallProbe::About::waiting) {
    answer.state = agreement_.compare_calls(world_rank, probe);
    return answer;
  }
  const Operation* const operation = running_.find(sequence);
  answer.elsewhere = std::move(awaited_elsewhere);
  if (answer.elsewhere.empty()) answer.at = where_the_program_is();
  if (sequence == StallProbe::message_call) {
    answer.state = answer.elsewhere.empty() ? State::not_there_yet : State::waiting;
    return answer;
  }
  const Signature* const own = state_.calls.find(sequence);
  state_.stalls.note_site(state_.facts.rank_of(world_rank), sequence, probe.site);
  if (sequence >= state_.calls.next()) {
    answer.state = State::not_there_yet;
    told_to_wait_.insert_or_assign(world_rank, probe);
  } else if (own != nullptr && *own != probe.signature) {
    agreement_.report_mismatch(*own, probe.signature, world_rank);
    answer.state = State::waiting;
  } else if (operation != nullptr) {
    const Progress where = progress_of(what_holds_up(*operation));
    answer.state = State::waiting;
    answer.stage = operation->call ? where.stage : 0;
    answer.step = operation->call ? where.step : 0;
    answer.step_count = where.step_count;
    answer.waiting_for = where.waiting_for;
    answer.site = operation->site;
  } else {
    answer.state = State::past_it;
  }
  return answer;
}

// Ranks that heard that this rank had not entered a call hear that it has.
void StallWatch::tell_that_it_came() {
  for (auto at = told_to_wait_.begin(); at != told_to_wait_.end();) {
    const auto& [world_rank, probe] = *at;
    const std::uint64_t sequence = probe.signature.sequence;
    if (sequence >= state_.calls.next()) {
      ++at;
      continue;
    }
    const StallAnswer now_there = answer(world_rank, probe, state_.runtime->what_is_awaited(running_.find(sequence)));
    state_.runtime->control().answer(world_rank, no_question, encode(now_there));
    at = told_to_wait_.erase(at);
  }
}

void StallWatch::take_answer(int world_rank, std::uint64_t question, const StallAnswer& answer, TimePoint now) {
  using State = StallAnswer::State;
  const int rank = state_.facts.rank_of(world_rank);
  const bool is_about_difference = answer.state >= State::differs;
  if (is_about_difference || answer.state == State::unknown_group) agreement_.take_answer(world_rank, answer.state);
  if (is_about_difference) return;
  Operation* const operation = running_.find(answer.sequence);
  if (rank < 0 || (operation == nullptr && answer.sequence != StallProbe::message_call)) return;
  state_.stalls.note(rank, answer, now, question);
  if (operation == nullptr) return;
  // Whom it waits for is asked next: at once, not after another interval.
  if (answer.state == State::waiting && follows_chains(*operation, now)) {
    std::size_t asked = 0;
    for (const int next : answer.waiting_for) {
      const bool valid =
          next >= 0 && next < state_.facts.size && (state_.facts.size <= few_ranks || asked++ < probes_max);
      if (valid && !state_.stalls.answered(next, answer.sequence, now - probe_after)) ask(state_, next, *operation);
    }
  }
  if (watched_sequence_ == answer.sequence) consider_warning(*operation, now);
}

void StallWatch::consider_warning(Operation& operation, TimePoint now) {
  const Duration limit = state_.runtime->parts().stall_warning;
  const TimePoint since = operation.is_message() ? message_watched_since_ : watched_since_;
  if (operation.reported || now - since < limit || !speaks_for_all(operation, now)) return;
  operation.reported = true;
  state_.runtime->parts().log.warn("{}", report(operation, now, "has waited for " + format_duration(limit)));
}

// Of all ranks that wait in the call, the lowest reports it. Lower ranks are asked whether they wait; those that have not entered the
// call, have left it or do not answer do not report anything.
bool StallWatch::speaks_for_all(const Operation& operation, TimePoint now) {
  constexpr int asked_at_once = 4;
  const std::uint64_t key = stall_key(operation);
  int asked = 0;
  for (int rank = 0; rank < state_.facts.rank && asked < asked_at_once; ++rank) {
    switch (state_.stalls.standing(rank, key, now, answer_stale)) {
      case StallMap::Standing::waits: return false;
      case StallMap::Standing::does_not_wait: break;
      case StallMap::Standing::unknown:
        state_.stalls.note_question(rank, key, now);
        ask(state_, rank, operation);
        [[fallthrough]];
      case StallMap::Standing::asked: ++asked; break;
    }
  }
  return asked == 0;
}

std::string StallWatch::report(const Operation& operation, TimePoint now, std::string_view what) const {
  const GroupFacts& facts = state_.facts;
  const GroupNames& names = state_.names;
  if (const Operation& first = what_holds_up(operation); &first != &operation) {
    return fmt::format("{}{} {} on rank {} behind {}", names.call(operation), at_site(operation.site), what, facts.rank,
                       report(first, now, "which waits"));
  }
  const Progress where = progress_of(operation);
  const std::uint64_t key = stall_key(operation);
  const auto ends = state_.stalls.ends(wait_of(operation, where), now, answer_stale);
  const std::string missing = ends.empty() ? "any rank to send"
                                           : state_.stalls.describe_all(ends, key, {now, answer_stale},
                                                                        [&](int rank) { return names.rank(rank); });
  const std::string step = operation.is_message() ? "" : fmt::format(" at step {} of {}", where.step, where.step_count);
  const std::string others = operation.request.verb == Verb::recv ? names.messages_not_taken() : "";
  const bool says_group = operation.is_message() || facts.id == state_.runtime->directory().world_group();
  return fmt::format("{}{}{} ({}) {} on rank {}{}, waiting for {}{}", names.call(operation),
                     says_group ? "" : " in " + names.group(), at_site(operation.site), where.how, what, facts.rank,
                     step, missing, others);
}

void StallWatch::time_out(Operation& operation, TimePoint now) {
  const std::string text =
      report(operation, now, fmt::format("timed out after {}", format_duration(operation.timeout)));
  if (operation.is_message()) {
    const std::string what = fmt::format("{}: {}", state_.names.who(), text);
    return failure_.give_up(operation, std::make_exception_ptr(Timeout(what)));
  }
  if (!operation.failing.empty()) return failing_.time_out(operation);
  const Progress where = progress_of(what_holds_up(operation));
  std::vector<int> culprits;
  for (const int rank : state_.stalls.ends(wait_of(operation, where), now, answer_stale))
    culprits.push_back(state_.world_rank(rank));
  failure_.propose({.kind = control::Cause::Kind::timeout,
                    .culprits = culprits,
                    .sequence = operation.request.signature.sequence,
                    .text = text});
}

}  // namespace tutti
