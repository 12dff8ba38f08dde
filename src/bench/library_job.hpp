// library_job.hpp: the coordinator's side: starts the ranks of each library, hands out turns, collects the answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tutti/clock.hpp>

#include "bench/bench_case.hpp"
#include "bench/library_process.hpp"
#include "bench/line_socket.hpp"

namespace tutti::bench {

/// How the ranks of one library are started: one process for each, or one launcher for all.
struct JobStart {
  std::string library{};
  int ranks = 1;
  std::vector<ProcessStart> processes{};
};

/// SIGINT or SIGTERM came: whoever catches it ends with 128 + signal.
struct Interrupted {
  int signal = 0;
};

/// What all jobs of a run share: a private folder, the socket in it, and an ear for signals. All of it is gone afterwards.
class Coordinator {
 public:
  Coordinator();
  Coordinator(const Coordinator&) = delete;
  ~Coordinator();
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string socket_path() const { return folder_ + "/socket"; }
  [[nodiscard]] std::string log_path(const std::string& library) const { return folder_ + "/" + library + ".log"; }
  /// Until one of the descriptors is readable: its index, or −1 at the deadline. Throws Interrupted.
  int wait_readable(const std::vector<int>& fds, TimePoint deadline) const;
  [[nodiscard]] LineSocket accept() const;
  [[nodiscard]] int listening_fd() const { return listening_.get(); }

 private:
  std::string folder_{};
  UniqueFd signals_{}, listening_{};
  sigset_t previous_mask_{};
};

/// A library at work. When it goes, its ranks do: they end when the coordinator hangs up.
class LibraryJob {
 public:
  /// Returns when all ranks are there; throws Error with the end of what they printed if they do not come.
  LibraryJob(const Coordinator& coordinator, JobStart start);

  [[nodiscard]] const JobStart& start() const { return start_; }
  /// What the library says of itself.
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Each batch with the time of its slowest rank. Trouble of any rank is the trouble of all; once one has not answered
  /// by the deadline, the job is of no more use.
  Answer run(const Turn& turn, TimePoint deadline);

 private:
  void meet(TimePoint deadline);
  void admit(LineSocket socket, TimePoint deadline);
  [[nodiscard]] std::string output_tail() const;

  const Coordinator& coordinator_;
  JobStart start_;
  std::string description_{};
  std::vector<LibraryProcess> processes_{};
  std::vector<std::unique_ptr<LineSocket>> ranks_{};  // after processes_: hang up first, then wait for their end
};

}  // namespace tutti::bench
