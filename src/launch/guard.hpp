// guard.hpp: the process between tuttirun and its ranks.
// SPDX-License-Identifier: Apache-2.0
//
// The guard starts the ranks, so they are its children. It adopts the processes that they leave behind, and only the
// guard reaps them. So no signal ever goes to a process id that was reused meanwhile.
//
// 1. If tuttirun dies for any reason, the guard sees its socket close and ends the ranks (SIGTERM, grace, SIGKILL).
// 2. If the guard dies for any reason, the kernel kills the ranks (PDEATHSIG), and tuttirun, which adopts the rest,
//    kills that.
// 3. The guard has no terminal, blocks every signal that can be blocked, and does not have tuttirun's name or
//    arguments, so that one `pkill` does not hit both.
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
