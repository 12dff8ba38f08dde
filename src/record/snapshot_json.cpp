// snapshot_json.cpp: a rank's records for other programs.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <tutti/dtype.hpp>

#include "record/snapshot.hpp"

namespace tutti::record {
namespace {

using Json = nlohmann::ordered_json;

Json groups_of(const Snapshot& snapshot) {
  Json groups = Json::array();
  for (const GroupRecord& group : snapshot.groups) {
    if (group.id == 0 && group.counts.empty()) continue;
    Json verbs = Json::object();
    for (const VerbCount& count : group.counts) {
      verbs[std::string(tutti::name_of(count.verb))] = {{"calls", count.calls},
                                                        {"bytes", count.bytes},
                                                        {"failed", count.failed},
                                                        {"seconds", static_cast<double>(count.busy_ns) * 1e-9},
                                                        {"waited", static_cast<double>(count.waited_ns) * 1e-9}};
    }
    groups.push_back({{"id", group.id},
                      {"members", group.members},
                      {"rank", group.rank},
                      {"size", group.size},
                      {"verbs", std::move(verbs)}});
  }
  return groups;
}

Json call_of(const Snapshot& snapshot, const CallRecord& call) {
  const auto dtype = static_cast<DType>(call.dtype);
  Json json{{"number", call.number},
            {"verb", tutti::name_of(call.verb)},
            {"group", snapshot.group_of(call).members},
            {"state", name_of(call.state)},
            {"started_ns", call.started_ns},
            {"bytes", call.bytes},
            {"dtype", tutti::name_of(dtype)},
            {"algorithm", call.how},
            {"site", call.site}};
  if (!call.is_under_way()) json["ended_ns"] = call.ended_ns;
  if (!call.is_message()) json["sequence"] = call.sequence;
  if ((call.flags & CallShape::reduces) != 0) json["op"] = name_of_op(call.op);
  if (call.peer) json[call.is_message() ? "peer" : "root"] = *call.peer;
  if (call.is_message()) json["tag"] = call.tag;
  return json;
}

}  // namespace

std::string to_json(const Snapshot& snapshot) {
  Json json{{"job", snapshot.job},           {"rank", snapshot.rank},        {"size", snapshot.size},
            {"host", snapshot.host},         {"process", snapshot.process},  {"left", snapshot.life == Life::left},
            {"begin_ns", snapshot.begin_ns}, {"read_ns", snapshot.read_ns},  {"calls_made", snapshot.written},
            {"error", snapshot.error},       {"ending", snapshot.ending},    {"waits", snapshot.stall.text},
            {"stack", snapshot.stack},       {"groups", groups_of(snapshot)}};
  Json calls = Json::array();
  for (const CallRecord& call : snapshot.calls) calls.push_back(call_of(snapshot, call));
  json["calls"] = std::move(calls);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::record
