// rank_records.cpp: one segment per rank.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_records.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <utility>

#include "base/environment.hpp"
#include "record/own_file.hpp"
#include "record/segment.hpp"
#include "watch/metrics.hpp"

namespace tutti::launch {

RankRecords::RankRecords(int ranks, int first_rank, const std::string& trace_folder, std::size_t trace_entries) {
  for (int rank = 0; rank < ranks; ++rank) {
    files_.push_back(trace_folder.empty() ? record::make_segment(record::entry_count_usual)
                                          : record::make_segment_file(trace_folder, first_rank + rank, trace_entries));
  }
}

std::string RankRecords::variable(int rank) const {
  const std::string said = record::describe_descriptor(file(rank));
  return said.empty() ? said : fmt::format("{}={}", record::descriptor_variable, said);
}

// A rank of another host, or a process that was none.
void RankRecords::note_ending(int rank, const std::string& how) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index < files_.size() && files_[index]) record::note_ending(files_[index].get(), how);
}

void RankRecords::dump(const std::string& folder, int first_rank) const {
  mkdir(folder.c_str(), 0700);
  for (int rank = 0; rank < std::ssize(files_); ++rank) {
    if (const auto snapshot = read(rank))
      record::write_own_file(fmt::format("{}/rank-{}.json", folder, first_rank + rank), to_json(*snapshot));
  }
}

std::string RankRecords::metrics() const {
  std::vector<record::Snapshot> ranks;
  for (const UniqueFd& file : files_) {
    auto snapshot = file ? record::read_counts(file.get(), record::Alive::yes) : std::nullopt;
    if (snapshot) ranks.push_back(std::move(*snapshot));
  }
  return watch::to_prometheus(ranks);
}

std::optional<record::Snapshot> RankRecords::read(int rank) const {
  return file(rank) < 0 ? std::nullopt : record::read_snapshot(file(rank), record::Alive::no);
}

std::string describe_last_call(const record::Snapshot& snapshot) {
  const record::CallRecord* call = snapshot.oldest_under_way();
  if (call == nullptr && !snapshot.calls.empty()) call = &snapshot.calls.back();
  if (call == nullptr) return "it made no call";
  const std::string where = call->site.empty() ? "" : " at " + call->site;
  const std::string group = snapshot.group_of(*call).members;
  const std::string in = group == "world" || group.empty() ? "" : " in a group of " + group;
  return fmt::format("its last call was {}{}{}, {}", record::describe(*call), in, where,
                     call->is_under_way()
                         ? "which was under way"
                         : "which had " + std::string(call->state == record::State::failed ? "failed" : "ended"));
}

}  // namespace tutti::launch
