// cause.hpp: why a job ended, in one sentence and one number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tutti/clock.hpp>

namespace tutti::launch {

struct Cause {
  enum class Kind {
    none,         // every rank ended with 0
    exited,       // rank, process, value: its status
    signalled,    // rank, process, value: the signal
    not_started,  // rank, value: an errno
    timed_out,    // limit, ranks: those that still ran
    asked,        // value: the signal that tuttirun was sent
    guard_lost,
    output_lost,  // value: an errno
    log_lost,     // text
    host_lost,    // host, text: how
    host_back,    // host: it can be reached again, and the job is to have it
  };

  Kind kind = Kind::none;
  int rank = -1;
  int process = 0;
  int value = 0;
  bool has_core = false;
  Duration after{};  // since the start
  Duration limit{};
  std::vector<int> ranks = {};
  std::string text = {};
  std::string host = {};  // of the rank; empty: this one
};

// What tuttirun returns.
int exit_status(const Cause& cause);

struct JobFacts {
  int world_size = 1;
  std::string program = {};
};

// "rank 3 of 8 (train.py, process 4711) exited with status 7 after 1.2 s"; no full stop, no newline.
std::string describe(const Cause& cause, const JobFacts& job);

// "11, SIGSEGV (Segmentation fault)".
std::string describe_signal(int signal);

// "0-3, 7".
std::string describe_ranks(std::span<const int> ranks);

}  // namespace tutti::launch
