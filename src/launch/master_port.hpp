// master_port.hpp: the port that a program's own rendezvous may use, such as torch.distributed's store on rank 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

namespace tutti::launch {

// Rank 0 has to be able to bind the port, so it cannot be held. It lies outside of the range the kernel hands out by
// itself, and no other tuttirun of this machine takes it as long as this lives.
struct MasterPort {
  int port = 0;
  UniqueFd claim = {};
};

// A free port. Throws Error if there is none.
MasterPort free_master_port();

// The port asked for; UsageError if somebody listens on it.
MasterPort given_master_port(int port);

}  // namespace tutti::launch
