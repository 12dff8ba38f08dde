// jobs.hpp: the jobs of this user that run on this machine: found through /proc, because records have no name anywhere.
// SPDX-License-Identifier: Apache-2.0
//
// Who may open a descriptor of a process through /proc is decided by the kernel: who may trace it. Only processes of the same user are
// looked at in any case, and only files of that user count; nobody else can plant a job, or answer for one.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "record/snapshot.hpp"

namespace tutti::record {

/// One rank's records, open for reading, and for asking where it is alive.
struct FoundRecord {
  UniqueFd file;
  std::vector<std::int64_t> holders{};  // processes that have it: the rank, and what started it
  Snapshot snapshot{};
  bool is_alive = false;  // the rank's process runs
};

struct FoundJob {
  std::string id{};
  int size = 0;                      // ranks, on all hosts
  std::int64_t launcher = -1;        // the process that started the ranks; −1: not tuttirun
  std::string command{};             // of the launcher, or of a rank
  std::vector<FoundRecord> ranks{};  // of this machine, by rank
};

enum class Read : std::uint8_t { counts, calls };
std::vector<FoundJob> find_jobs(Read what);
/// The one of these that is meant: by (the beginning of) its id, the number of one of its processes, or, of a single one, by nothing.
/// Throws InvalidArgument with the ones there are.
FoundJob choose_job(std::vector<FoundJob> jobs, std::string_view name);

/// Has ranks that live write down where their Python programs are, all at once, and reads their records again. Ranks that do not
/// answer within `limit` keep an empty stack.
void ask_for_stacks(std::vector<FoundRecord*> ranks, std::chrono::milliseconds limit);
/// Reads a record again.
void refresh(FoundRecord& rank, Read what);

}  // namespace tutti::record
