// libraries.hpp: how the ranks of Tutti and of each peer are started.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/library_job.hpp"

namespace tutti::bench {

/// The program that is running: its ranks are the same program.
std::string own_program();

/// Where ranks are started: as many on each host, as `agent HOST COMMAND…` does it, which need not be ssh: the coordinator's socket is a file,
/// so the hosts are namespaces of this machine. Without names: here.
struct BenchHosts {
  std::vector<std::string> names{};
  std::string agent{};
  std::string network_interface{};  // by which they reach each other
};

struct TuttiStart {
  std::string program{};  // `tutti`
  std::string backend = "auto";
  int ranks = 1;
  std::string library = "tutti";
  std::string table_path{};  // TUTTI_TABLE for the ranks, if any
  BenchHosts hosts{};
};
JobStart tutti_job(const Coordinator& coordinator, const TuttiStart& start);

inline constexpr std::string_view peer_names[] = {"openmpi", "mpich", "impi", "gloo"};

/// The variants of a peer, the best of which counts (Open MPI has three sets of collectives). Throws Unsupported with
/// the reason if it is not installed, InvalidArgument for a name that is not known.
std::vector<JobStart> peer_jobs(const Coordinator& coordinator, std::string_view peer, int ranks,
                                const BenchHosts& hosts = {});

}  // namespace tutti::bench
