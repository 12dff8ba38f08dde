// membership.cpp: registration, and the verdict.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "base/environment.hpp"
#include "base/printable.hpp"

namespace tutti::rendezvous {
namespace {

constexpr std::string_view size_key = "rendezvous/size";
constexpr std::string_view count_key = "rendezvous/count";
constexpr std::string_view verdict_key = "rendezvous/verdict";
constexpr std::size_t text_bytes_max = 4096;
constexpr std::uint8_t bad = 0, good = 1;

std::string as_text(const ByteWriter& writer) {
  const auto bytes = writer.data();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ByteReader reader_of(std::string_view text, std::string_view what) {
  return ByteReader(std::as_bytes(std::span(text)), what);
}

std::string encode_verdict(const NodeTable& table) {
  ByteWriter writer;
  writer.u8(good).u8(table.one_machine ? 1 : 0).u32(static_cast<std::uint32_t>(table.node_of_rank.size()));
  for (const std::uint32_t node : table.node_of_rank) writer.u32(node);
  return as_text(writer);
}

NodeTable decode_verdict(std::string_view text) {
  ByteReader reader = reader_of(text, "the verdict on membership");
  if (reader.u8() == bad) throw RendezvousError(printable_text(reader.string(text_bytes_max)));
  NodeTable table{.node_of_rank = {}, .one_machine = reader.u8() != 0};
  const std::uint32_t size = reader.u32();
  if (size != reader.remaining() / 4) throw MalformedMessage("the verdict on membership is cut off");
  table.node_of_rank.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i) table.node_of_rank.push_back(reader.u32());
  return table;
}

}  // namespace

std::string MemberRecord::who() const { return fmt::format("pid {} on host {}", pid, host); }

std::string MemberRecord::encode() const {
  ByteWriter writer;
  writer.i64(rank).i64(size).string(node).string(machine).string(host).i64(pid).string(version).string(token);
  return as_text(writer);
}

MemberRecord MemberRecord::decode(std::string_view text) {
  ByteReader reader = reader_of(text, "a rank's record");
  MemberRecord record;
  record.rank = static_cast<int>(reader.i64());
  record.size = static_cast<int>(reader.i64());
  record.node = reader.string(text_bytes_max);
  record.machine = reader.string(text_bytes_max);
  record.host = printable_text(reader.string(text_bytes_max));
  record.pid = reader.i64();
  record.version = printable_text(reader.string(text_bytes_max));
  record.token = reader.string(text_bytes_max);
  reader.expect_end();
  return record;
}

NodeTable number_nodes(const std::vector<MemberRecord>& records) {
  NodeTable table;
  std::map<std::string_view, std::uint32_t> numbers;
  for (const MemberRecord& record : records) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    table.node_of_rank.push_back(numbers.emplace(record.node, next).first->second);
    table.one_machine = table.one_machine && record.machine == records.front().machine;
  }
  return table;
}

std::string Membership::key_of(int rank) const { return fmt::format("rendezvous/rank/{}", rank); }

Membership::Membership(Store& store, MemberRecord record, const Clock& clock, TimePoint deadline)
    : store_(store), record_(std::move(record)), clock_(clock), deadline_(deadline) {
  if (record_.version.empty()) record_.version = TUTTI_VERSION;
}

void Membership::sign_in() {
  const std::string mine = record_.encode();
  const MemberRecord first = MemberRecord::decode(store_.compare_set(size_key, std::nullopt, mine, deadline_));
  if (first.size != record_.size) {
    contradict(fmt::format(
        "rank {} ({}) was started for a job of {} ranks, rank {} ({}) for one of {}; give all the same size "
        "(WORLD_SIZE)",
        record_.rank, record_.who(), record_.size, first.rank, first.who(), first.size));
  }
  if (first.version != record_.version) {
    contradict(fmt::format(
        "rank {} ({}) has version {} of Tutti, rank {} ({}) version {}; install the same on all hosts, and see that "
        "the program finds it there (PYTHONPATH, LD_LIBRARY_PATH)",
        record_.rank, record_.who(), record_.version, first.rank, first.who(), first.version));
  }
  const MemberRecord owner =
      MemberRecord::decode(store_.compare_set(key_of(record_.rank), std::nullopt, mine, deadline_));
  if (owner.token != record_.token) {
    contradict(fmt::format(
        "rank {} of {} was started twice: {} and {}; give every process a rank of its own, and end what is left of an "
        "earlier run",
        record_.rank, record_.size, owner.who(), record_.who()));
  }
  if (store_.add(count_key, 1, deadline_) == record_.size) publish_list();
}

void Membership::contradict(const std::string& why) {
  spoil(why);
  throw RendezvousError(why);
}

void Membership::publish_list() {
  std::vector<MemberRecord> records;
  for (int rank = 0; rank < record_.size; ++rank)
    records.push_back(MemberRecord::decode(store_.get(key_of(rank), deadline_)));
  (void)store_.compare_set(verdict_key, std::nullopt, encode_verdict(number_nodes(records)), deadline_);
}

std::optional<NodeTable> Membership::verdict(TimePoint until) {
  std::string text;
  try {
    text = store_.get(verdict_key, std::min(until, deadline_));
  } catch (const Timeout&) {
    return std::nullopt;
  }
  try {
    return decode_verdict(text);
  } catch (const RendezvousError&) {
    mark_read();
    throw;
  }
}

void Membership::mark_read() {
  const TimePoint soon = deadline_after(clock_.now(), std::chrono::seconds(1));
  store_.set(fmt::format("rendezvous/read/{}", record_.rank), "", soon);
}

std::vector<int> Membership::ranks_that_signed(TimePoint until) {
  std::vector<int> ranks;
  for (int rank = 0; rank < record_.size; ++rank) {
    if (store_.try_get(key_of(rank), until)) ranks.push_back(rank);
  }
  return ranks;
}

void Membership::give_up(std::string_view where, std::string_view also) {
  const TimePoint grace = deadline_after(clock_.now(), std::chrono::seconds(2));
  std::vector<int> missing;
  const std::vector<int> there = ranks_that_signed(grace);
  for (int rank = 0; rank < record_.size; ++rank) {
    if (!std::ranges::binary_search(there, rank)) missing.push_back(rank);
  }
  const std::string why = fmt::format(
      "{} {} of {} did not come in time to the meeting at {}; check that {} started and can reach that place{}",
      missing.size() == 1 ? "rank" : "ranks", list_ranks(missing), record_.size, where,
      missing.size() == 1 ? "it was" : "they were", also);
  deadline_ = grace;
  spoil(why);
  throw RendezvousError(why);
}

void Membership::spoil(std::string_view why) {
  ByteWriter writer;
  writer.u8(bad).string(why.substr(0, text_bytes_max));
  (void)store_.compare_set(verdict_key, std::nullopt, as_text(writer), deadline_);
  mark_read();
}

void Membership::linger(TimePoint until) {
  try {
    for (int rank = 0; rank < record_.size; ++rank) {
      if (rank != record_.rank) store_.wait(fmt::format("rendezvous/read/{}", rank), until);
    }
  } catch (const Error&) {
    // A rank did not come to read the verdict, and will find that no process listens.
  }
}

std::string list_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t runs_max = 8;
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i <= 2) {
      for (; i < end; ++i) runs.push_back(fmt::format("{}", ranks[i]));
    } else {
      runs.push_back(fmt::format("{}–{}", ranks[i], ranks[end - 1]));
    }
    i = end;
  }
  std::string last = runs.empty() ? "none" : runs.back();
  if (runs.size() > runs_max) last = fmt::format("{} more groups of ranks", runs.size() - runs_max + 1);
  runs.resize(std::min(runs.size(), runs_max));
  if (runs.size() <= 1) return last;
  runs.pop_back();
  return fmt::format("{} and {}", fmt::join(runs, ", "), last);
}

}  // namespace tutti::rendezvous
