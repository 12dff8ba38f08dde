// guard.hpp: the process between tuttirun and its ranks.
// SPDX-License-Identifier: Apache-2.0
//
// The guard starts the ranks, so they are its children; it adopts whatever they leave behind, and nobody but the guard
// reaps them, so that no signal ever goes to a process id that has been given to somebody else meanwhile.
//
// 1. tuttirun dies, however: the guard sees its socket close, and ends the ranks (SIGTERM, grace, SIGKILL).
// 2. The guard dies, however: the kernel kills the ranks (PDEATHSIG), and tuttirun, which adopts the rest, kills that.
// 3. The guard is out of reach of the terminal, blocks every signal that can be blocked, and does not bear tuttirun's name
//    or arguments, so that one `pkill` does not hit both.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include <tutti/clock.hpp>

#include "base/unique_fd.hpp"
#include "launch/cgroup.hpp"
#include "launch/spawn.hpp"

namespace tutti::launch {

struct GuardPlan {
  std::vector<SpawnRequest> ranks = {};
  Cgroup cgroup = {};
  Duration grace{};            // if tuttirun dies, and for what the ranks leave behind
  std::span<char> title = {};  // the memory in which this process's arguments lie
};

// One packet, in either direction.
struct GuardMessage {
  enum class Kind : std::int32_t {
    started,       // rank, process
    not_started,   // rank, value: an errno
    ended,         // rank, process, value: as waitpid says it
    left_behind,   // value: processes that outlived all ranks and are being ended
    unkillable,    // process
    done,          // nothing is left, or nothing that can be ended
    signal_ranks,  // value: a signal, to the ranks themselves
    signal_all,    // value: a signal, to all their descendants as well
    end,           // value: a signal, to all; SIGKILL after grace_ms
  };

  Kind kind = Kind::done;
  std::int32_t rank = -1;
  std::int32_t process = 0;
  std::int32_t value = 0;
  std::int64_t grace_ms = 0;
};

// tuttirun's end of it.
class Guard {
 public:
  // Forks. This process must be a subreaper, and have all signals blocked.
  explicit Guard(GuardPlan& plan);

  enum class Received { message, nothing, closed };
  Received receive(GuardMessage& message);
  void send(const GuardMessage& message);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  UniqueFd socket_;
  pid_t id_ = -1;
};

}  // namespace tutti::launch
