// perfetto.cpp: calls and their steps as slices, messages as flows.
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

/// The lines of one rank: of each group its calls, and below them their steps. Slices of one line must not overlap: what begins before
/// another has ended gets a line of its own.
class Lanes {
 public:
  enum class Row : std::uint8_t { calls, steps };
  int place(std::size_t group, Row row, std::int64_t begin, std::int64_t end) {
    const std::size_t rows = 2 * group + static_cast<std::size_t>(row);
    auto& ends = ends_[rows];
    std::size_t lane = 0;
    while (lane < ends.size() && ends[lane] > begin) ++lane;
    if (lane == ends.size()) ends.push_back(0);
    ends[lane] = end;
    return static_cast<int>(rows * lanes_max + std::min(lane, lanes_max - 1)) + 1;
  }

 private:
  static constexpr std::size_t lanes_max = 100;
  std::map<std::size_t, std::vector<std::int64_t>> ends_;
};

/// Of what became slices: the line that each is on.
struct Placed {
  std::map<const CallRecord*, int> calls;
  std::map<const record::StepRecord*, int> steps;
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

Json slice(const RankView& rank, const record::StepRecord& step, int lane, std::int64_t zero) {
  using record::StepKind;
  std::string name(record::name_of(step.kind));
  if (step.kind == StepKind::send) name += fmt::format(" to {}", step.peer);
  if (step.kind == StepKind::recv) name += fmt::format(" from {}", step.peer);
  Json args{{"call", step.sequence}};
  if (step.bytes > 0) args["bytes"] = step.bytes;
  return {{"ph", "X"},
          {"name", std::move(name)},
          {"cat", "step"},
          {"pid", rank.snapshot.rank},
          {"tid", lane},
          {"ts", microseconds(step.started_ns - zero)},
          {"dur", microseconds(std::max<std::int64_t>(step.ended_ns - step.started_ns, 1))},
          {"args", std::move(args)}};
}

void add_calls(const RankView& rank, std::int64_t zero, Json& events, Placed& placed) {
  const record::Snapshot& snapshot = rank.snapshot;
  Lanes lanes;
  std::map<int, std::string> names;
  for (const CallRecord& call : snapshot.calls) {
    const int lane = lanes.place(call.group, Lanes::Row::calls, call.started_ns, Timeline::end_of(rank, call));
    placed.calls[&call] = lane;
    names.emplace(lane, snapshot.group_of(call).members);
    events.push_back(slice(rank, call, lane, zero));
  }
  std::vector<const record::StepRecord*> steps;
  for (const record::StepRecord& step : snapshot.steps) steps.push_back(&step);
  std::ranges::stable_sort(steps, {}, &record::StepRecord::started_ns);
  for (const record::StepRecord* const step : steps) {
    const auto group = std::ranges::find(snapshot.groups, step->group, &record::GroupRecord::id);
    if (group == snapshot.groups.end()) continue;
    const auto place = static_cast<std::size_t>(group - snapshot.groups.begin());
    const int lane = lanes.place(place, Lanes::Row::steps, step->started_ns, step->ended_ns);
    placed.steps[step] = lane;
    names.emplace(lane, group->members + ": steps");
    events.push_back(slice(rank, *step, lane, zero));
  }
  for (const auto& [lane, name] : names) {
    events.push_back(metadata("thread_name", snapshot.rank, lane, name));
    events.push_back({{"ph", "M"},
                      {"name", "thread_sort_index"},
                      {"pid", snapshot.rank},
                      {"tid", lane},
                      {"args", {{"sort_index", lane}}}});
  }
}

struct FlowEnd {
  int rank = 0, lane = 0;
  std::int64_t at_ns = 0;
};

/// From within one slice into another.
void add_flow(const char* name, const FlowEnd& from, const FlowEnd& to, int id, Json& events) {
  const auto event = [&](const char* phase, const FlowEnd& end) {
    return Json{{"ph", phase},
                {"id", id},
                {"name", name},
                {"cat", name},
                {"pid", end.rank},
                {"tid", end.lane},
                {"ts", microseconds(end.at_ns)}};
  };
  events.push_back(event("s", from));
  events.push_back(event("f", to));
  events.back()["bp"] = "e";
}

void add_messages(const Timeline& timeline, std::int64_t zero, const Placed& placed, Json& events) {
  int id = 0;
  const auto add = [&](const char* name, const auto& arrow, int lane_sent, int lane_received) {
    const std::int64_t received = std::max(arrow.received->ended_ns, arrow.received->started_ns + 1);
    add_flow(name, {.rank = arrow.from, .lane = lane_sent, .at_ns = arrow.sent->started_ns - zero},
             {.rank = arrow.to, .lane = lane_received, .at_ns = received - zero}, ++id, events);
  };
  for (const Arrow& arrow : timeline.arrows())
    add("message", arrow, placed.calls.at(arrow.sent), placed.calls.at(arrow.received));
  for (const StepArrow& arrow : timeline.step_arrows()) {
    const auto sent = placed.steps.find(arrow.sent), received = placed.steps.find(arrow.received);
    if (sent != placed.steps.end() && received != placed.steps.end())
      add("message of a step", arrow, sent->second, received->second);
  }
}

}  // namespace

std::string to_perfetto(const Timeline& timeline) {
  Json events = Json::array();
  const std::int64_t zero = timeline.begin_ns();
  Placed placed;
  for (const RankView& rank : timeline.ranks()) {
    const int number = rank.snapshot.rank;
    events.push_back(metadata("process_name", number, 0, fmt::format("rank {} ({})", number, rank.snapshot.host)));
    events.push_back(
        {{"ph", "M"}, {"name", "process_sort_index"}, {"pid", number}, {"args", {{"sort_index", number}}}});
    add_calls(rank, zero, events, placed);
  }
  add_messages(timeline, zero, placed, events);
  const Json all{
      {"displayTimeUnit", "ns"}, {"otherData", {{"job", timeline.job()}}}, {"traceEvents", std::move(events)}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::watch
