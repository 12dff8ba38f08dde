// spawn.hpp: starts one rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>

namespace tutti::launch {

// How this process inherited its signals, for the ranks: tuttirun blocks all, and cannot do without SIGCHLD.
struct InheritedSignals {
  sigset_t blocked = {};
  bool ignores_child_end = false;  // SIGCHLD
  bool ignores_hangup = false;     // SIGHUP, as under nohup
};

// Blocks all signals of this thread, and those of threads it starts later. SIGCHLD gets its default action: where it is ignored,
// the kernel reaps children unasked, and nobody learns how, or that, a rank ended.
InheritedSignals take_over_signals();

struct SpawnRequest {
  const char* path = nullptr;
  char* const* words = nullptr;
  char* const* environment = nullptr;
  int input = -1, output = -1, error = -1;
  int news = -1, record = -1, rounds = -1;  // descriptors that the rank inherits under their numbers
  int cgroup = -1;                          // a descriptor
  std::optional<cpu_set_t> processors = {};
  InheritedSignals signals = {};
  rlimit descriptors = {};
};

struct Spawned {
  pid_t id = -1;
  int error = 0;  // an errno: it could not be started, or could not execute the program
};

// The new process leads a process group of its own, is killed if this process dies, and has executed the program when this returns.
Spawned spawn(const SpawnRequest& request);

}  // namespace tutti::launch
