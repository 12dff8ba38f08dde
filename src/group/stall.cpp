// stall.cpp: what ranks tell each other when a call takes long, and whom that makes responsible.
// SPDX-License-Identifier: Apache-2.0
#include "group/stall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/bytes.hpp"
#include "base/environment.hpp"

namespace tutti {
namespace {

constexpr std::size_t waiting_limit = 64;  // ranks named in one answer
constexpr std::size_t calls_limit = CallHistory::length;
constexpr std::size_t site_limit = 512;           // characters; of a longer one the end counts
constexpr std::size_t details_limit = 32 * 1024;  // of longer ones the beginning counts

std::string_view end_of(std::string_view site) { return site.substr(site.size() - std::min(site.size(), site_limit)); }

void write(ByteWriter& writer, const Signature& s) {
  writer.u64(s.sequence).u8(std::uint8_t(s.verb)).u8(std::uint8_t(s.dtype)).u8(std::uint8_t(s.op)).u8(s.flags);
  writer.u32(static_cast<std::uint32_t>(s.root)).i64(s.count).u32(s.detail).u32(s.history);
}

Signature read_signature(ByteReader& reader) {
  Signature s;
  s.sequence = reader.u64();
  const std::uint8_t verb = reader.u8(), dtype = reader.u8(), op = reader.u8();
  if (verb >= verb_count || !is_dtype(static_cast<DType>(dtype)) || op > std::uint8_t(Op::Kind::own)) {
    throw MalformedMessage("a stall probe with an unknown verb, dtype or reduction");
  }
  s.verb = static_cast<Verb>(verb);
  s.dtype = static_cast<DType>(dtype);
  s.op = static_cast<Op::Kind>(op);
  s.flags = reader.u8();
  s.root = static_cast<std::int32_t>(reader.u32());
  s.count = reader.i64();
  s.detail = reader.u32();
  s.history = reader.u32();
  return s;
}

std::set<int> reachable(const std::map<int, std::vector<int>>& waits, int from) {
  std::set<int> reached;
  std::vector<int> open{from};
  while (!open.empty()) {
    const auto found = waits.find(open.back());
    open.pop_back();
    if (found == waits.end()) continue;
    for (const int next : found->second) {
      if (reached.insert(next).second) open.push_back(next);
    }
  }
  return reached;
}

}  // namespace

std::string at_site(std::string_view site) { return site.empty() ? std::string() : fmt::format(" at {}", site); }

std::string name_ranks(std::span<const int> ranks) {
  constexpr std::size_t runs_max = 6;  // "3-7" is one
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  std::string text = "ranks ";
  std::size_t named = 0;
  for (std::size_t runs = 0; named < ranks.size() && runs < runs_max; ++runs) {
    std::size_t end = named + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const std::string_view before = named == 0 ? "" : end == ranks.size() ? " and " : ", ";
    text += fmt::format("{}{}", before, ranks[named]);
    if (end - named > 1) text += fmt::format("-{}", ranks[end - 1]);
    named = end;
  }
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

std::vector<std::byte> encode(const StallProbe& probe) {
  ByteWriter writer;
  writer.u8(std::uint8_t(probe.about)).u64(probe.group).u32(probe.epoch);
  write(writer, probe.signature);
  writer.string(end_of(probe.site)).string(std::string_view(probe.details).substr(0, details_limit));
  writer.u64(probe.digest.calls).u64(probe.digest.sum).u64(probe.digest.refused).u8(probe.digest.is_known ? 1 : 0);
  const std::size_t count = std::min(probe.calls.size(), calls_limit);
  writer.u16(static_cast<std::uint16_t>(count));
  for (std::size_t i = probe.calls.size() - count; i < probe.calls.size(); ++i) write(writer, probe.calls[i]);
  return std::move(writer).take();
}

StallProbe decode_probe(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "a stall probe");
  StallProbe probe;
  const std::uint8_t about = reader.u8();
  if (about > std::uint8_t(StallProbe::About::earlier_calls))
    throw MalformedMessage("a stall probe about something unknown");
  probe.about = static_cast<StallProbe::About>(about);
  probe.group = reader.u64();
  probe.epoch = reader.u32();
  probe.signature = read_signature(reader);
  probe.site = reader.string(site_limit);
  probe.details = reader.string(details_limit);
  probe.digest = {.calls = reader.u64(), .sum = reader.u64(), .refused = reader.u64(), .is_known = reader.u8() != 0};
  const std::size_t count = reader.u16();
  if (count > calls_limit) throw MalformedMessage("too many calls in a stall probe");
  for (std::size_t i = 0; i < count; ++i) probe.calls.push_back(read_signature(reader));
  reader.expect_end();
  return probe;
}

std::vector<std::byte> encode(const StallAnswer& answer) {
  ByteWriter writer;
  writer.u64(answer.group).u64(answer.sequence).u8(std::uint8_t(answer.state)).u64(answer.next_sequence);
  writer.u32(std::uint32_t(answer.stage)).u32(std::uint32_t(answer.step)).u32(std::uint32_t(answer.step_count));
  const std::size_t count = std::min(answer.waiting_for.size(), waiting_limit);
  writer.u16(static_cast<std::uint16_t>(count));
  for (std::size_t i = 0; i < count; ++i) writer.u32(std::uint32_t(answer.waiting_for[i]));
  writer.string(end_of(answer.site)).string(end_of(answer.elsewhere)).string(end_of(answer.at));
  return std::move(writer).take();
}

StallAnswer decode_answer(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "the answer to a stall probe");
  StallAnswer answer;
  answer.group = reader.u64();
  answer.sequence = reader.u64();
  const std::uint8_t state = reader.u8();
  if (state > std::uint8_t(StallAnswer::State::forgotten))
    throw MalformedMessage("an unknown state in the answer to a stall probe");
  answer.state = static_cast<StallAnswer::State>(state);
  answer.next_sequence = reader.u64();
  answer.stage = static_cast<std::int32_t>(reader.u32());
  answer.step = static_cast<std::int32_t>(reader.u32());
  answer.step_count = static_cast<std::int32_t>(reader.u32());
  const std::size_t count = reader.u16();
  if (count > waiting_limit) throw MalformedMessage("too many ranks in the answer to a stall probe");
  for (std::size_t i = 0; i < count; ++i) answer.waiting_for.push_back(static_cast<int>(reader.u32()));
  answer.site = reader.string(site_limit);
  answer.elsewhere = reader.string(site_limit);
  answer.at = reader.string(site_limit);
  reader.expect_end();
  return answer;
}

void StallMap::note(int rank, const StallAnswer& answer, TimePoint now, std::uint64_t question) {
  TimedAnswer& noted = answers_[{answer.sequence, rank}];
  noted.answer = answer;
  noted.at = now;
  noted.question = std::max(noted.question, question);
  if (const auto asked = unanswered_.extract({answer.sequence, rank}))
    noted.delay = std::max(noted.delay, now - asked.mapped());
  note_site(rank, answer.sequence, answer.site);
}

void StallMap::note_asked(int rank, std::uint64_t sequence, TimePoint now) {
  unanswered_.try_emplace({sequence, rank}, now);
}

void StallMap::note_site(int rank, std::uint64_t sequence, const std::string& site) {
  if (!site.empty()) sites_[{sequence, rank}] = site;
}

std::string StallMap::site_of(int rank, std::uint64_t sequence) const {
  const auto found = sites_.find({sequence, rank});
  return found == sites_.end() ? std::string() : found->second;
}

void StallMap::forget_before(std::uint64_t sequence) {
  answers_.erase(answers_.begin(), answers_.lower_bound({sequence, -1}));
  sites_.erase(sites_.begin(), sites_.lower_bound({sequence, -1}));
  questions_.erase(questions_.begin(), questions_.lower_bound({sequence, -1}));
  unanswered_.erase(unanswered_.begin(), unanswered_.lower_bound({sequence, -1}));
}

StallMap::Standing StallMap::standing(int rank, std::uint64_t sequence, TimePoint now, Duration stale) const {
  const auto answer = answers_.find({sequence, rank});
  if (answer != answers_.end() && now - answer->second.at <= stale) {
    return answer->second.answer.state == StallAnswer::State::waiting ? Standing::waits : Standing::does_not_wait;
  }
  const auto question = questions_.find({sequence, rank});
  if (question == questions_.end()) return Standing::unknown;
  if (answer != answers_.end() && answer->second.at > question->second) return Standing::unknown;  // that is long ago
  return now - question->second <= stale ? Standing::asked : Standing::does_not_wait;
}

void StallMap::note_question(int rank, std::uint64_t sequence, TimePoint now) { questions_[{sequence, rank}] = now; }

std::vector<int> StallMap::involved(std::span<const int> waiting_for, std::uint64_t sequence) const {
  std::set<int> seen;
  std::vector<int> open(waiting_for.begin(), waiting_for.end());
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (!seen.insert(rank).second) continue;
    const auto found = answers_.find({sequence, rank});
    if (found == answers_.end()) continue;
    if (found->second.answer.state != StallAnswer::State::waiting) continue;
    open.insert(open.end(), found->second.answer.waiting_for.begin(), found->second.answer.waiting_for.end());
  }
  return {seen.begin(), seen.end()};
}

bool StallMap::answered(int rank, std::uint64_t sequence, TimePoint since) const {
  const auto found = answers_.find({sequence, rank});
  return found != answers_.end() && found->second.at > since;
}

bool StallMap::answered_question(int rank, std::uint64_t sequence, std::uint64_t first) const {
  const auto found = answers_.find({sequence, rank});
  return found != answers_.end() && found->second.question >= first;
}

bool StallMap::was_asked(int rank, std::uint64_t sequence, TimePoint since) const {
  return unanswered_.contains({sequence, rank}) || answered(rank, sequence, since);
}

bool StallMap::has_passed(int rank, std::uint64_t sequence) const {
  const auto found = answers_.find({sequence, rank});
  return found != answers_.end() && found->second.answer.state == StallAnswer::State::past_it;
}

// Of the ranks on the chains, those that are known to wait.
StallMap::Waits StallMap::waits(const Wait& wait, TimePoint now, Duration stale) const {
  Waits waits{{wait.self, {wait.waiting_for.begin(), wait.waiting_for.end()}}};
  for (const int rank : involved(wait.waiting_for, wait.sequence)) {
    const auto found = answers_.find({wait.sequence, rank});
    if (rank == wait.self || found == answers_.end() || now - found->second.at > stale) continue;
    if (found->second.answer.state == StallAnswer::State::waiting) waits[rank] = found->second.answer.waiting_for;
  }
  for (auto& [rank, others] : waits) std::erase_if(others, [&](int other) { return has_passed(other, wait.sequence); });
  return waits;
}

StallMap::Far StallMap::far(int rank, const Wait& wait) const {
  const auto part = [](int step, int step_count) { return static_cast<double>(step) / std::max(1, step_count); };
  // Of those equally far it is the last to be blamed by itself.
  if (rank == wait.self)
    return {.stage = wait.stage, .part = part(wait.step, wait.step_count), .answered_after = Duration(1)};
  const TimedAnswer& latest = answers_.at({wait.sequence, rank});
  const StallAnswer& answer = latest.answer;
  return {.stage = answer.stage, .part = part(answer.step, answer.step_count), .answered_after = -latest.delay};
}

// A cycle is innermost if no rank in it waits for a rank outside. Of ranks that wait for each other, the one for which alone all others wait
// holds them up; if there is none, the one that is least far, and of several such the one that most of them wait for. −1 if no rank waits
// for another, or if the result is this rank itself: then what it waits for is on its way.
int StallMap::holds_up(const Wait& wait, const Waits& waits) const {
  std::map<int, std::set<int>> reached;
  for (const auto& [rank, others] : waits) reached[rank] = reachable(waits, rank);
  std::optional<std::pair<Far, int>> first;
  for (const auto& [rank, others] : reached) {
    const auto comes_back = [&, from = rank](int other) { return reached[other].contains(from); };
    if (others.empty() || !std::all_of(others.begin(), others.end(), comes_back)) continue;
    std::pair candidate{far(rank, wait), rank};
    for (const int other : others) {
      if (other == rank) continue;
      if (waits.at(other) != std::vector{rank}) candidate.first.is_one_of_many = true;
      candidate.first.waiters -= std::ranges::count(waits.at(other), rank);
    }
    if (!first || candidate < *first) first = candidate;
  }
  return first && first->second != wait.self ? first->second : -1;
}

std::vector<int> StallMap::ends(const Wait& wait, TimePoint now, Duration stale) const {
  const Waits waits = this->waits(wait, now, stale);
  std::set<int> ends, hold_up;  // hold_up: what they wait for was sent, and has not come
  for (const auto& [rank, others] : waits) {
    for (const int other : others) {
      if (!waits.contains(other)) ends.insert(other);
    }
    if (others.empty() && rank != wait.self) hold_up.insert(rank);
  }
  // A call that has moved on since it asked may wait for ranks that it knows nothing of: others are known to be late.
  const auto is_unknown = [&](int rank) { return !was_asked(rank, wait.sequence, TimePoint{}); };
  if (!std::ranges::all_of(ends, is_unknown)) std::erase_if(ends, is_unknown);
  if (ends.empty()) ends = hold_up;
  if (const int rank = ends.empty() ? holds_up(wait, waits) : -1; rank >= 0) ends = {rank};
  if (ends.empty())
    ends = {wait.waiting_for.begin(), wait.waiting_for.end()};  // all through: more cannot be said from here
  return {ends.begin(), ends.end()};
}

std::string StallMap::describe(int rank, std::uint64_t sequence, TimePoint now, Duration stale) const {
  const auto found = answers_.find({sequence, rank});
  if (found == answers_.end()) return "does not answer";
  const auto& [answer, at, question, delay] = found->second;
  if (now - at > stale) return fmt::format("last answered {} ago", format_duration(now - at));
  const std::string elsewhere = !answer.elsewhere.empty() ? fmt::format("waits in {}", answer.elsewhere)
                                : answer.at.empty()       ? "is in no call"
                                                    : fmt::format("is in no call: its program is at {}", answer.at);
  if (sequence == StallProbe::message_call) return elsewhere;
  switch (answer.state) {
    case StallAnswer::State::unknown_group: return "does not know this group";
    case StallAnswer::State::not_there_yet:
      return fmt::format("has not entered the call (its next is #{}) and {}", answer.next_sequence, elsewhere);
    case StallAnswer::State::waiting:
      return fmt::format("is at step {} of {}{}{}", answer.step, answer.step_count,
                         answer.site.empty() ? "" : ", called at ", answer.site);
    case StallAnswer::State::past_it: return "has finished the call";
    case StallAnswer::State::differs:
    case StallAnswer::State::agrees:
    case StallAnswer::State::forgotten: break;  // never noted: they are answers to other questions
  }
  return "is in an unknown state";
}

std::string StallMap::describe_all(std::span<const int> ranks, std::uint64_t sequence, When when,
                                   const std::function<std::string(int)>& name_of_rank) const {
  constexpr std::size_t kinds_max = 3;  // one line is enough, however many ranks are late
  std::vector<std::pair<std::string, std::vector<int>>> kinds;
  for (const int rank : ranks) {
    std::string how = describe(rank, sequence, when.now, when.stale);
    const auto known = std::ranges::find(kinds, how, &std::pair<std::string, std::vector<int>>::first);
    if (known == kinds.end()) {
      kinds.emplace_back(std::move(how), std::vector{rank});
    } else {
      known->second.push_back(rank);
    }
  }
  std::string text;
  std::size_t named = 0;
  for (const auto& [how, those] : std::span(kinds).first(std::min(kinds.size(), kinds_max))) {
    text += text.empty() ? "" : "; ";
    text += those.size() == 1 ? fmt::format("{}, which {}", name_of_rank(those[0]), how)
                              : fmt::format("{}, each of which {}", name_ranks(those), how);
    named += those.size();
  }
  if (named < ranks.size()) text += fmt::format("; and {} more ranks", ranks.size() - named);
  return text;
}

}  // namespace tutti
