// stats.cpp: the counts of a rank's calls for its own program.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/stats.hpp>

#include <fmt/format.h>

#include <chrono>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/current_world.hpp"
#include "group/runtime.hpp"
#include "record/own_file.hpp"
#include "record/snapshot.hpp"

namespace tutti {
namespace {

std::shared_ptr<GroupCore> world_for(const char* what) {
  if (auto core = current_world()) return core;
  throw InvalidArgument(fmt::format("{}: this process has not joined a job; call init() first", what));
}

record::Snapshot snapshot_of(GroupCore& core) {
  core.runtime().check_alive();
  const auto& recorder = core.runtime().parts().recorder;
  auto snapshot = recorder ? record::read_own(*recorder) : std::nullopt;
  return snapshot.value_or(record::Snapshot{});
}

std::vector<CallStats> stats_of(GroupCore& core) {
  std::vector<CallStats> all;
  for (const record::GroupRecord& group : snapshot_of(core).groups) {
    if (group.id == 0) continue;
    for (const record::VerbCount& count : group.counts) {
      all.push_back({.group = group.members,
                     .verb = count.verb,
                     .calls = count.calls,
                     .bytes = count.bytes,
                     .failed = count.failed,
                     .busy = std::chrono::nanoseconds(count.busy_ns),
                     .waited = std::chrono::nanoseconds(count.waited_ns)});
    }
  }
  return all;
}

}  // namespace

std::vector<CallStats> stats() { return stats_of(*world_for("stats")); }

std::vector<CallStats> stats(const Group& group) { return stats_of(*group.core()); }

void dump_calls(const std::string& path) {
  record::write_own_file(path, to_json(snapshot_of(*world_for("dump_calls"))));
}

void dump_calls(const Group& group, const std::string& path) {
  record::write_own_file(path, to_json(snapshot_of(*group.core())));
}

}  // namespace tutti
