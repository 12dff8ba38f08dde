// allocation.hpp: the hosts that a scheduler gave this job, found in the environment: nobody has to list them again.
// SPDX-License-Identifier: Apache-2.0
//
// A Slurm allocation (in a batch script or salloc's shell, not in a step), a hostfile that Kubeflow's MPIJob mounts for other
// launchers, and pods of a PyTorchJob or an indexed Job or JobSet of Kubernetes, in each of which tuttirun is started.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

// Fills in hosts, or this node's number among others, where the command line left them open (no -H, --hostfile, --nnodes, --node-rank,
// --standalone). Returns what it found, as a sentence for people; "" if there is no allocation, or only this host is in it. Throws UsageError
// that names the variable.
std::string apply_allocation(RunOptions& options, const Environment& environment);

}  // namespace tutti::launch
