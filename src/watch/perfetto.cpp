// perfetto.cpp: calls as slices, messages as flows.
// SPDX-License-Identifier: Apache-2.0
#include "watch/perfetto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include <tutti/dtype.hpp>

namespace tutti::watch {
namespace {

using Json = nlohmann::ordered_json;
using record::CallRecord;

double microseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

/// Slices of one thread must not overlap: what begins before another has ended gets a line of its own.
class Lanes {
 public:
  int place(std::size_t group, std::int64_t begin, std::int64_t end) {
    auto& ends = ends_[group];
    std::size_t lane = 0;
    while (lane < ends.size() && ends[lane] > begin) ++lane;
    if (lane == ends.size()) ends.push_back(0);
    ends[lane] = end;
    return static_cast<int>(group * lanes_max + std::min(lane, lanes_max - 1)) + 1;
  }

 private:
  static constexpr std::size_t lanes_max = 100;
  std::map<std::size_t, std::vector<std::int64_t>> ends_;
};

Json metadata(const char* what, int process, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json slice(const RankView& rank, const CallRecord& call, int lane, std::int64_t zero) {
  const std::int64_t end = Timeline::end_of(rank, call);
  Json args{{"call", describe(call)}, {"bytes", call.bytes}, {"state", record::name_of(call.state)}};
  if (!call.how.empty()) args["algorithm"] = call.how;
  if (!call.site.empty()) args["line"] = call.site;
  return {{"ph", "X"},
          {"name", tutti::name_of(call.verb)},
          {"cat", rank.snapshot.group_of(call).members},
          {"pid", rank.snapshot.rank},
          {"tid", lane},
          {"ts", microseconds(call.started_ns - zero)},
          {"dur", microseconds(std::max<std::int64_t>(end - call.started_ns, 1))},
          {"args", std::move(args)}};
}

}  // namespace

std::string to_perfetto(const Timeline& timeline) {
  Json events = Json::array();
  const std::int64_t zero = timeline.begin_ns();
  std::map<const CallRecord*, int> lane_of;
  for (const RankView& rank : timeline.ranks()) {
    const int number = rank.snapshot.rank;
    events.push_back(metadata("process_name", number, 0, fmt::format("rank {} ({})", number, rank.snapshot.host)));
    events.push_back(
        {{"ph", "M"}, {"name", "process_sort_index"}, {"pid", number}, {"args", {{"sort_index", number}}}});
    Lanes lanes;
    std::map<int, std::string> names;
    for (const CallRecord& call : rank.snapshot.calls) {
      const int lane = lanes.place(call.group, call.started_ns, Timeline::end_of(rank, call));
      lane_of[&call] = lane;
      names.emplace(lane, rank.snapshot.group_of(call).members);
      events.push_back(slice(rank, call, lane, zero));
    }
    for (const auto& [lane, name] : names) events.push_back(metadata("thread_name", number, lane, name));
  }
  int id = 0;
  for (const Arrow& arrow : timeline.arrows()) {
    const Json from{{"ph", "s"},
                    {"id", ++id},
                    {"name", "message"},
                    {"cat", "message"},
                    {"pid", arrow.from},
                    {"tid", lane_of[arrow.sent]},
                    {"ts", microseconds(arrow.sent->started_ns - zero)}};
    const Json to{{"ph", "f"},
                  {"bp", "e"},
                  {"id", id},
                  {"name", "message"},
                  {"cat", "message"},
                  {"pid", arrow.to},
                  {"tid", lane_of[arrow.received]},
                  {"ts", microseconds(std::max(arrow.received->ended_ns, arrow.received->started_ns + 1) - zero)}};
    events.push_back(from);
    events.push_back(to);
  }
  const Json all{
      {"displayTimeUnit", "ns"}, {"otherData", {{"job", timeline.job()}}}, {"traceEvents", std::move(events)}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::watch
