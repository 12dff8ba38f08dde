// rank_records.cpp: one segment per rank.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_records.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "base/environment.hpp"
#include "base/system_files.hpp"
#include "record/jobs.hpp"
#include "record/own_file.hpp"
#include "record/segment.hpp"
#include "watch/diagnosis.hpp"
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

void RankRecords::ask_where() const {
  std::vector<record::FoundRecord> ranks;
  for (const UniqueFd& file : files_) {
    auto snapshot = file ? record::read_counts(file.get(), record::Alive::yes) : std::nullopt;
    UniqueFd own(snapshot && snapshot->life == record::Life::joined ? fcntl(file.get(), F_DUPFD_CLOEXEC, 3) : -1);
    if (!own) continue;
    const bool is_alive = start_of_process(static_cast<pid_t>(snapshot->process)) == snapshot->process_started;
    ranks.push_back({.file = std::move(own), .snapshot = std::move(*snapshot), .is_alive = is_alive});
  }
  std::vector<record::FoundRecord*> asked;
  for (record::FoundRecord& rank : ranks) asked.push_back(&rank);
  record::ask_for_stacks(asked, std::chrono::milliseconds(500));
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
  const std::string last = fmt::format("its last call was {}{}{}", record::describe(*call), in, where);
  if (call->is_under_way()) return last + ", which was under way";
  const std::string line = watch::innermost_line(snapshot.stack);
  return fmt::format("{}, which had {}{}", last, call->state == record::State::failed ? "failed" : "ended",
                     line.empty() ? "" : "; its program was at " + line);
}

}  // namespace tutti::launch
