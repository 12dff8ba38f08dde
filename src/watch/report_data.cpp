// report_data.cpp: sums over the records of a job.
// SPDX-License-Identifier: Apache-2.0
#include "watch/report_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "watch/words.hpp"

namespace tutti::watch {
namespace {

using record::CallRecord;

std::vector<SizeRow> sizes_of(const Timeline& timeline) {
  struct Sum {
    SizeRow row;
    std::vector<std::int64_t> times;
    std::map<std::string, std::size_t> ways;
  };
  std::map<std::pair<Verb, std::uint64_t>, Sum> sums;
  for (const RankView& rank : timeline.ranks()) {
    for (const CallRecord& call : rank.snapshot.calls) {
      const std::uint64_t class_max = std::bit_ceil(call.bytes);
      Sum& sum = sums[{call.verb, call.bytes == 0 ? 0 : class_max}];
      const std::int64_t took = Timeline::end_of(rank, call) - call.started_ns;
      ++sum.row.calls;
      sum.row.bytes += call.bytes;
      sum.row.total_ns += took;
      sum.times.push_back(took);
      if (!call.how.empty()) ++sum.ways[call.how];
    }
  }
  std::vector<SizeRow> rows;
  for (auto& [key, sum] : sums) {
    std::ranges::sort(sum.times);
    sum.row.verb = key.first;
    sum.row.bytes_max = key.second;
    sum.row.median_ns = sum.times[sum.times.size() / 2];
    sum.row.worst_ns = sum.times.back();
    if (!sum.ways.empty())
      sum.row.how = std::ranges::max_element(sum.ways, {}, [](const auto& way) { return way.second; })->first;
    rows.push_back(sum.row);
  }
  return rows;
}

/// Whom a rank's part of a collective goes to, and how many bytes of it: what the verb needs, whatever the algorithm.
double bytes_to_each(const CallRecord& call, int size) {
  const auto bytes = static_cast<double>(call.bytes);
  switch (call.verb) {
    case Verb::all_reduce: return 2 * bytes / size;  // a part of the sum from each, and the finished part to each
    case Verb::all_gather:
    case Verb::reduce_scatter:
    case Verb::all_to_all: return bytes / size;
    case Verb::scan:
    case Verb::exscan: return bytes / size;
    default: return 0;
  }
}

void add_collective(const Timeline& timeline, const RankView& rank, const CallRecord& call, ReportData& data) {
  const record::GroupRecord& group = rank.snapshot.group_of(call);
  const auto add = [&](int from, int to, double bytes) {
    const auto a = timeline.world_rank(group.id, from), b = timeline.world_rank(group.id, to);
    if (!a || !b || *a == *b || bytes == 0) return;
    data.traffic[static_cast<std::size_t>(*a)][static_cast<std::size_t>(*b)] += bytes;
    data.has_estimates = true;
  };
  const auto bytes = static_cast<double>(call.bytes);
  const int root = call.peer.value_or(-1);
  if (call.verb == Verb::broadcast && group.rank != root) return add(root, group.rank, bytes);
  if (call.verb == Verb::scatter && group.rank != root) return add(root, group.rank, bytes / group.size);
  if ((call.verb == Verb::reduce || call.verb == Verb::gather) && group.rank != root)
    return add(group.rank, root, bytes);
  for (int to = 0; to < group.size; ++to) add(group.rank, to, bytes_to_each(call, group.size));
}

void add_traffic(const Timeline& timeline, ReportData& data) {
  const auto size = static_cast<std::size_t>(timeline.size());
  data.traffic.assign(size, std::vector<double>(size));
  for (const RankView& rank : timeline.ranks()) {
    for (const CallRecord& call : rank.snapshot.calls) {
      if (!call.is_message()) {
        add_collective(timeline, rank, call, data);
      } else if (const auto to = timeline.world_rank(rank.snapshot.group_of(call).id, call.peer.value_or(-1));
                 to && call.verb == Verb::send) {
        data.traffic[static_cast<std::size_t>(rank.snapshot.rank)][static_cast<std::size_t>(*to)] +=
            static_cast<double>(call.bytes);
      }
    }
  }
}

RankTime time_of(const RankView& rank) {
  RankTime time{.rank = rank.snapshot.rank, .span_ns = rank.snapshot.read_ns - rank.snapshot.begin_ns};
  std::int64_t end = 0;
  for (const CallRecord& call : rank.snapshot.calls) {
    const std::int64_t from = std::max(end, call.started_ns), to = Timeline::end_of(rank, call);
    if (to > from) time.in_calls_ns += to - from;
    end = std::max(end, to);
  }
  std::int64_t busy = 0;
  for (const record::GroupRecord& group : rank.snapshot.groups) {
    for (const record::VerbCount& count : group.counts) {
      time.waited_ns += count.waited_ns;
      busy += count.busy_ns;
    }
  }
  const bool is_worth_telling = busy * 100 > time.span_ns;  // less is the clock's noise
  if (busy > time.waited_ns && is_worth_telling)
    time.overlap = 1 - static_cast<double>(time.waited_ns) / static_cast<double>(busy);
  return time;
}

std::vector<std::string> advice_for(const ReportData& data) {
  std::vector<std::string> advice;
  for (const Finding& finding : data.findings) {
    if (finding.kind == Finding::Kind::slow)
      advice.push_back(
          fmt::format("Give {} less work, or look at what else runs on its cores: the others wait for it. "
                      "tutti doctor, run there, shows the cores and their share.",
                      say_ranks(finding.ranks)));
    if (finding.kind == Finding::Kind::mismatch)
      advice.push_back(
          "Let every rank of a group make the same calls in the same order: an if on the rank around a "
          "collective is the usual cause.");
    if (finding.kind == Finding::Kind::missing)
      advice.push_back(fmt::format("Look at the line where {} is; tutti where shows its stack while the job runs.",
                                   say_ranks(finding.ranks)));
    if (finding.kind == Finding::Kind::gone)
      advice.push_back(
          fmt::format("Look at the last output of {}; a kill by signal 9 without a word is often the "
                      "kernel's, for want of memory (dmesg).",
                      say_ranks(finding.ranks)));
  }
  constexpr std::size_t many = 200;
  for (const SizeRow& row : data.sizes) {
    if (row.verb == Verb::all_reduce && row.bytes_max > 0 && row.bytes_max <= 4096 && row.calls > many)
      advice.push_back(
          fmt::format("{} calls of all_reduce have at most {}: give several arrays in one call, as a list "
                      "or a dict, and they travel together.",
                      row.calls, say_bytes(double(row.bytes_max))));
  }
  const bool one_is_slow =
      std::ranges::any_of(data.findings, [](const Finding& finding) { return finding.kind == Finding::Kind::slow; });
  for (const RankTime& time : data.times) {
    if (one_is_slow) break;  // then the others wait, whatever they do
    if (time.span_ns > 0 && time.waited_ns * 2 > time.span_ns && time.overlap < 0) {
      advice.push_back(fmt::format("Rank {} stood in calls for {} of {}. async_op=True lets it compute meanwhile.",
                                   time.rank, say_time(time.waited_ns), say_time(time.span_ns)));
      break;
    }
  }
  return advice;
}

}  // namespace

ReportData report_of(const Timeline& timeline) {
  ReportData data{.findings = diagnose(timeline), .sizes = sizes_of(timeline), .lateness = lateness_of(timeline)};
  add_traffic(timeline, data);
  for (const RankView& rank : timeline.ranks()) data.times.push_back(time_of(rank));
  data.advice = advice_for(data);
  return data;
}

}  // namespace tutti::watch
