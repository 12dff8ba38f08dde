// runtime_parts.hpp: what one rank's part in a job is made of. Passed in, so that ranks can be threads of one test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "control/control.hpp"
#include "group/launcher_news.hpp"
#include "plan/select.hpp"
#include "record/recorder.hpp"
#include "shm/local_peers.hpp"
#include "shm/memory.hpp"

namespace tutti {

struct RuntimeParts {
  const Clock* clock = nullptr;
  std::unique_ptr<Transport> transport;
  std::vector<std::string> hosts;  // of each rank in the world, as people call them
  std::vector<int> node_of;        // node of each rank in the world
  Duration default_timeout = std::chrono::seconds(300);
  Duration stall_warning = std::chrono::seconds(10);  // a call that waits longer is reported
  Table table;                                        // the same on every rank
  std::uint64_t seed = 0;                             // of the control network's randomness
  bool oversubscribed = false;                        // more ranks than cores: yield, do not spin
  bool threaded = true;        // false: the driver polls, and a rank that leaves does not let its calls end
  bool fails_at_exit = false;  // what is found wrong too late to be thrown makes the process fail
  control::ControlOptions control;
  LauncherPipe launcher;                         // over which it says which processes have ended; none: nobody does
  std::vector<BackendFactory> backends;          // of the program's own, for every group
  BackendFactory mpi;                            // of a job on MPI; empty: this job has not joined it
  std::shared_ptr<shm::LocalPeers> local_peers;  // who shares memory with this rank; null: nobody does
  std::shared_ptr<shm::Memory> memory;           // of this rank's arena; null where there are no local peers
  bool may_read_local_peers = false;           // all ranks of this host may read each other's memory (process_vm_readv)
  bool may_share_memory = false;               // the same on all ranks: some of them may
  std::shared_ptr<record::Recorder> recorder;  // of this rank's calls; null: they are not written down
  Log log;
};

}  // namespace tutti
