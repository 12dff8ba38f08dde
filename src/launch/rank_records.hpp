// rank_records.hpp: the memory in which the ranks of this host write down their calls: kept here, so that it outlives them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "record/snapshot.hpp"

namespace tutti::launch {

class RankRecords {
 public:
  /// One for each rank of this host; with a folder, files in it, for full traces. Throws Error if these cannot be made.
  RankRecords(int ranks, int first_rank, const std::string& trace_folder, std::size_t trace_entries);

  /// What a rank inherits under this number; -1: there is none.
  [[nodiscard]] int file(int rank) const { return files_[static_cast<std::size_t>(rank)].get(); }
  /// "TUTTI_RECORD_FD=7:4711"; empty: there is none.
  [[nodiscard]] std::string variable(int rank) const;
  /// Its process has ended; `how` is a clause.
  void note_ending(int rank, const std::string& how) const;
  /// Has the ranks that live write down where their Python programs are, before they are ended. Waits for at most half a second.
  void ask_where() const;
  /// Writes "rank-3.json" and so on. Throws Error.
  void dump(const std::string& folder, int first_rank) const;
  /// Those of all ranks that have joined, as Prometheus reads them. Any thread.
  [[nodiscard]] std::string metrics() const;
  /// What the rank has written so far, alive or not; nothing: it has not joined the job.
  [[nodiscard]] std::optional<record::Snapshot> read(int rank) const;

 private:
  std::vector<UniqueFd> files_;
};

/// "its last call was all_reduce #412 (float32 × 1024, sum) at train.py:41, under way for 3.2 s": what a rank that ended was doing.
std::string describe_last_call(const record::Snapshot& snapshot);

}  // namespace tutti::launch
