// attempt.hpp: what each start of a job has of its own: id, secret, and how the one after a failure begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "launch/job.hpp"
#include "launch/master_port.hpp"
#include "launch/options.hpp"
#include "launch/rank_environment.hpp"
#include "store/tcp_server.hpp"
#include "wire/handshake.hpp"
#include "wire/secret.hpp"

namespace tutti::launch {

std::string fresh_job_id();
// Of nodes on which tuttirun is started by hand: ranks meet under the id, so it follows from what is the same for all. An address
// may be written in several ways.
std::string common_job_id(const Placement& placement);

// TUTTI_SECRET if it is set, for the first start; later ones get secrets that nobody had before, so that a process of an
// earlier start, wherever it still runs, cannot speak to them. Throws UsageError.
wire::Secret choose_secret(const RunOptions& options, const Environment& environment, int restart);

// Where the ranks of this host meet, for one start.
struct Meeting {
  wire::Secret secret;
  std::string job = fresh_job_id();
  MasterPort master_port = {};
  std::unique_ptr<TcpStoreServer> store = {};

  // What the ranks have to know of it.
  void describe_in(Placement& placement) const;
};

// What the ranks will find in TUTTI_TLS: `-x` goes before the environment.
wire::Encryption encryption_of_ranks(const RunOptions& options, const Environment& environment);

// Serves the store on loopback. `name` is this program's, for messages.
void serve_store(Meeting& meeting, wire::Encryption encryption, std::string_view name);

// Starts the job, and starts it again after a failure as often as `restarts` says, and whenever it may grow. Returns tuttirun's
// exit status.
int run_attempts(std::string_view name, int restarts, const std::function<JobEnd(int restart)>& run_once);

}  // namespace tutti::launch
