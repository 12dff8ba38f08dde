// diagnosis.cpp: compares what the ranks have written down.
// SPDX-License-Identifier: Apache-2.0
#include "watch/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "watch/words.hpp"

namespace tutti::watch {
namespace {

using record::CallRecord;
using Key = std::pair<std::uint64_t, std::uint64_t>;  // a group and the number of a call

struct InCall {
  const RankView* rank;
  const CallRecord* call;
};
using Calls = std::map<Key, std::vector<InCall>>;

Calls collectives_of(const Timeline& timeline) {
  Calls calls;
  for (const RankView& rank : timeline.ranks()) {
    for (const CallRecord& call : rank.snapshot.calls) {
      if (!call.is_message()) calls[{rank.snapshot.group_of(call).id, call.sequence}].push_back({&rank, &call});
    }
  }
  return calls;
}

std::string at(const CallRecord& call) { return call.site.empty() ? "" : " at " + call.site; }

std::string of_group(const RankView& rank, const CallRecord& call) {
  const std::string& members = rank.snapshot.group_of(call).members;
  return members == "world" || members.empty() ? "" : " of " + members;
}

// Where sizes may differ between ranks (a root's array, uneven blocks), the verb has to be the same, and no more.
bool is_same_call(const CallRecord& a, const CallRecord& b) {
  if (a.verb != b.verb || a.peer != b.peer || ((a.flags ^ b.flags) & record::CallShape::reduces) != 0) return false;
  if (a.verb == Verb::all_reduce || a.verb == Verb::scan || a.verb == Verb::exscan)
    return a.bytes == b.bytes && a.dtype == b.dtype && a.op == b.op;
  return true;
}

std::vector<Finding> mismatches(const Calls& calls) {
  for (const auto& [key, those] : calls) {
    const InCall& first = those.front();
    const auto other =
        std::ranges::find_if(those, [&](const InCall& in) { return !is_same_call(*first.call, *in.call); });
    if (other == those.end()) continue;
    // Later calls differ because this one did.
    return {{.kind = Finding::Kind::mismatch,
             .text = fmt::format("The ranks make different calls: rank {} made {}{}, rank {} made {}{}{}.",
                                 first.rank->snapshot.rank, describe(*first.call), at(*first.call),
                                 other->rank->snapshot.rank, describe(*other->call), at(*other->call),
                                 of_group(*first.rank, *first.call)),
             .ranks = {first.rank->snapshot.rank, other->rank->snapshot.rank}}};
  }
  return {};
}

std::string last_call(const RankView& rank) {
  const CallRecord* call = rank.snapshot.oldest_under_way();
  if (call == nullptr && !rank.snapshot.calls.empty()) call = &rank.snapshot.calls.back();
  return call == nullptr ? "it had made no call" : fmt::format("its last call was {}{}", describe(*call), at(*call));
}

// tuttirun ends all ranks when one fails: those of which it says how they ended were the first.
std::vector<Finding> gone_ranks(const Timeline& timeline) {
  const auto is_told = [](const RankView& rank) { return !rank.snapshot.ending.empty(); };
  const bool some_are_told = std::ranges::any_of(timeline.ranks(), is_told);
  std::vector<Finding> findings;
  for (const RankView& rank : timeline.ranks()) {
    if (rank.seen != Seen::gone || (some_are_told && !is_told(rank))) continue;
    const std::string how = is_told(rank) ? rank.snapshot.ending : "it crashed or was killed";
    findings.push_back(
        {.kind = Finding::Kind::gone,
         .text = fmt::format("Rank {} (process {} on {}) has ended without leaving the job: {}; {}.",
                             rank.snapshot.rank, rank.snapshot.process, rank.snapshot.host, how, last_call(rank)),
         .ranks = {rank.snapshot.rank}});
  }
  return findings;
}

std::string where_missing(const RankView& rank) {
  const std::string line = innermost_line(rank.snapshot.stack);
  if (rank.seen == Seen::gone)
    return line.empty() ? "it has ended" : "it has ended; its program was at " + line + " when it was last asked";
  if (rank.seen == Seen::left) return "it has left the job";
  const CallRecord* const other = rank.snapshot.oldest_under_way();
  if (other != nullptr) return fmt::format("it is in {}{}", describe(*other), at(*other));
  const std::string place = line.empty() ? "it is in no call" : "its program is at " + line;
  if (rank.snapshot.calls.empty()) return place;
  const CallRecord& last = rank.snapshot.calls.back();
  return fmt::format("{}; its latest call, {}{}, ended {} before", place, describe(last), at(last),
                     say_time(rank.snapshot.read_ns - last.ended_ns));
}

/// Members of the call's group that are on record and have not come to the call.
std::vector<const RankView*> missing_from(const Timeline& timeline, const Key& key, const std::vector<InCall>& those) {
  std::vector<const RankView*> missing;
  for (const RankView& rank : timeline.ranks()) {
    const auto is_group = [&](const record::GroupRecord& group) { return group.id == key.first; };
    const bool is_there = std::ranges::any_of(those, [&](const InCall& in) { return in.rank == &rank; });
    // A record that was overwritten belongs to a call of long ago.
    const auto later = [&](const CallRecord& call) {
      return !call.is_message() && rank.snapshot.group_of(call).id == key.first && call.sequence > key.second;
    };
    if (!is_there && std::ranges::any_of(rank.snapshot.groups, is_group) &&
        std::ranges::none_of(rank.snapshot.calls, later))
      missing.push_back(&rank);
  }
  return missing;
}

constexpr std::int64_t long_ns = 200'000'000;  // shorter waits are part of any job

Finding waiting_in(const Timeline& timeline, const Key& key, const std::vector<InCall>& those,
                   const std::vector<InCall>& waiting) {
  std::vector<int> ranks;
  std::int64_t longest = 0;
  for (const InCall& in : waiting) {
    ranks.push_back(in.rank->snapshot.rank);
    longest = std::max(longest, Timeline::end_of(*in.rank, *in.call) - in.call->started_ns);
  }
  const CallRecord& call = *waiting.front().call;
  std::string text = fmt::format("{} wait{} in {}{}{}, for {}", say_ranks(ranks), ranks.size() == 1 ? "s" : "",
                                 describe(call), of_group(*waiting.front().rank, call), at(call), say_time(longest));
  text.front() = 'R';
  const auto missing = missing_from(timeline, key, those);
  Finding finding{.kind = missing.empty() ? Finding::Kind::waiting : Finding::Kind::missing};
  for (const RankView* const rank : missing) {
    finding.ranks.push_back(rank->snapshot.rank);
    text += fmt::format(". Rank {} is missing: {}", rank->snapshot.rank, where_missing(*rank));
  }
  if (missing.empty() && !waiting.front().rank->snapshot.stall.text.empty())
    text += ". " + waiting.front().rank->snapshot.stall.text;
  finding.text = text + ".";
  return finding;
}

std::vector<Finding> waits(const Timeline& timeline, const Calls& calls) {
  std::vector<Finding> findings;
  for (const auto& [key, those] : calls) {
    std::vector<InCall> waiting;
    for (const InCall& in : those) {
      const bool is_long = Timeline::end_of(*in.rank, *in.call) - in.call->started_ns >= long_ns;
      if (in.call->is_under_way() && is_long) waiting.push_back(in);
    }
    if (!waiting.empty()) findings.push_back(waiting_in(timeline, key, those, waiting));
  }
  for (const RankView& rank : timeline.ranks()) {
    const CallRecord* const call = rank.snapshot.oldest_under_way();
    if (call == nullptr || !call->is_message() || Timeline::end_of(rank, *call) - call->started_ns < long_ns) continue;
    const auto peer = timeline.world_rank(rank.snapshot.group_of(*call).id, call->peer.value_or(-1));
    findings.push_back({.kind = Finding::Kind::waiting,
                        .text = fmt::format("Rank {} waits in {}{}, for {}.", rank.snapshot.rank, describe(*call),
                                            at(*call), say_time(Timeline::end_of(rank, *call) - call->started_ns)),
                        .ranks = peer ? std::vector{*peer} : std::vector<int>{}});
  }
  return findings;
}

/// Whether the cause of a broken group has been found already: it is named there with the ranks' numbers in the world, and lines.
bool is_explained(const std::string& error, const std::vector<Finding>& found) {
  return std::ranges::any_of(found, [&](const Finding& finding) {
    if (finding.kind == Finding::Kind::mismatch)
      return error.find("every rank of a group must make the same calls") != std::string::npos;
    if (finding.kind != Finding::Kind::gone) return false;
    return error.find(fmt::format("rank {} is lost", finding.ranks.front())) != std::string::npos;
  });
}

std::vector<Finding> errors(const Timeline& timeline, const std::vector<Finding>& found) {
  std::map<std::string, std::vector<int>> by_text;
  for (const RankView& rank : timeline.ranks()) {
    const std::string& error = rank.snapshot.error;
    if (!error.empty() && !is_explained(error, found)) by_text[error].push_back(rank.snapshot.rank);
  }
  std::vector<Finding> findings;
  for (const auto& [text, ranks] : by_text) {
    findings.push_back({.kind = Finding::Kind::failed,
                        .text = fmt::format("A group broke on {}: {}", say_ranks(ranks), text),
                        .ranks = ranks});
  }
  return findings;
}

/// When the last call ended that waits for all. What comes after it, such as a rank that hangs, is not the fault of slow ones.
std::int64_t end_of_common_calls(const Timeline& timeline) {
  std::int64_t end = timeline.begin_ns();
  for (const RankView& rank : timeline.ranks()) {
    for (const CallRecord& call : rank.snapshot.calls) {
      if (synchronises(call.verb) && !call.is_under_way()) end = std::max(end, call.ended_ns);
    }
  }
  return end;
}

// One that is last nearly always, and makes the others wait for a good part of the time.
std::vector<Finding> slow_ranks(const Timeline& timeline) {
  constexpr std::size_t calls_min = 8;
  const auto late = lateness_of(timeline);
  if (late.empty()) return {};
  const Lateness& worst = *std::ranges::max_element(late, {}, &Lateness::late_ns);
  const std::int64_t span = end_of_common_calls(timeline) - timeline.begin_ns();
  if (worst.calls < calls_min || worst.times_last * 10 < worst.calls * 7 || worst.late_ns * 10 < span) return {};
  return {
      {.kind = Finding::Kind::slow,
       .text = fmt::format("Rank {} is slow: it came last into {} of {} calls that wait for all, and the others waited "
                           "{} of {} for it.",
                           worst.rank, worst.times_last, worst.calls, say_time(worst.late_ns), say_time(span)),
       .ranks = {worst.rank}}};
}

}  // namespace

std::string_view name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::mismatch: return "mismatch";
    case Finding::Kind::gone: return "gone";
    case Finding::Kind::missing: return "missing";
    case Finding::Kind::failed: return "failed";
    case Finding::Kind::slow: return "slow";
    case Finding::Kind::waiting: return "waiting";
  }
  return "unknown";
}

std::string innermost_line(const std::string& stack) { return stack.substr(0, stack.find('\n')); }

std::string say_where(const RankView& rank) {
  const record::Snapshot& snapshot = rank.snapshot;
  if (rank.seen == Seen::gone) return fmt::format("gone: {}", last_call(rank));
  if (rank.seen == Seen::left) return "has left the job";
  if (const CallRecord* const call = snapshot.oldest_under_way()) {
    const std::string step = snapshot.stall.number == call->number && snapshot.stall.step_count > 0
                                 ? fmt::format(", at step {} of {}", snapshot.stall.step, snapshot.stall.step_count)
                                 : "";
    return fmt::format("in {}{}{} for {}{}", describe(*call), of_group(rank, *call), at(*call),
                       say_time(Timeline::end_of(rank, *call) - call->started_ns), step);
  }
  const std::string line = innermost_line(snapshot.stack);
  const std::string place = line.empty() ? "not in Tutti" : fmt::format("not in Tutti: at {}", line);
  if (snapshot.calls.empty()) return place + "; it has made no call";
  const CallRecord& latest = snapshot.calls.back();
  return fmt::format("{}; its latest call, {}{}, {} {} ago", place, describe(latest), at(latest),
                     latest.state == record::State::failed ? "failed" : "ended",
                     say_time(snapshot.read_ns - latest.ended_ns));
}

std::vector<Lateness> lateness_of(const Timeline& timeline) {
  std::map<int, Lateness> by_rank;
  for (const RankView& rank : timeline.ranks()) by_rank[rank.snapshot.rank].rank = rank.snapshot.rank;
  for (const auto& [key, those] : collectives_of(timeline)) {
    const bool all_are_there =
        static_cast<int>(those.size()) == those.front().rank->snapshot.group_of(*those.front().call).size;
    if (!all_are_there || those.size() < 2 || !synchronises(those.front().call->verb)) continue;
    std::vector<std::pair<std::int64_t, int>> entered;
    for (const InCall& in : those) entered.emplace_back(in.call->started_ns, in.rank->snapshot.rank);
    std::ranges::sort(entered);
    for (const auto& [time, rank] : entered) ++by_rank[rank].calls;
    Lateness& last = by_rank[entered.back().second];
    ++last.times_last;
    last.late_ns += entered.back().first - entered[entered.size() - 2].first;
  }
  std::vector<Lateness> all;
  for (const auto& [rank, late] : by_rank) all.push_back(late);
  return all;
}

std::vector<Finding> diagnose(const Timeline& timeline) {
  const Calls calls = collectives_of(timeline);
  std::vector<Finding> all;
  const auto add = [&](std::vector<Finding> more) { std::ranges::move(more, std::back_inserter(all)); };
  add(mismatches(calls));
  add(gone_ranks(timeline));
  add(waits(timeline, calls));
  add(errors(timeline, all));
  add(slow_ranks(timeline));
  std::ranges::stable_sort(all, {}, &Finding::kind);
  return all;
}

}  // namespace tutti::watch
