// rank_news.hpp: pipes over which the ranks of this host hear which processes of the job have ended, and how.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace tutti::launch {

// A line per process that ended: "3 c0ffee its process 4711 on b was killed by signal 9, SIGKILL (Killed)": the rank, the job
// it was a rank of (ranks that outlive others are ranks of one job after the other), and how. A rank that does not read misses what does not fit into its pipe, and the job nothing.
class RankNews {
 public:
  explicit RankNews(int ranks);

  // What a rank inherits, under this number: the value of TUTTI_LAUNCHER_FD. -1: descriptors ran out.
  [[nodiscard]] int reader(int rank) const { return pipes_[static_cast<std::size_t>(rank)].reader.get(); }
  void close_readers();
  void tell(std::string_view job, int rank, std::string_view how) const;
  // A line as it is; whether it was taken.
  bool tell_line(int rank, std::string_view line) const;

 private:
  struct Pipe {
    UniqueFd reader, writer;
  };
  std::vector<Pipe> pipes_;
};

// "its process 4711 on b exited with status 3"; `status` as waitpid says it.
std::string describe_process_end(int process, int status, std::string_view host);

}  // namespace tutti::launch
