// hosts.hpp: the hosts of a job, as people list them: -H a:8,b:8, or a hostfile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

struct Host {
  std::string name = {};  // as the remote shell takes it: "a", "user@a", "10.0.0.1", "fd00::1"
  int slots = 0;          // ranks; 0: not said

  friend bool operator==(const Host&, const Host&) = default;
};

// "a:8,user@b,[fd00::1]:2". A host that is named again has the slots of all its mentions; one without a number counts
// as one. Throws UsageError.
std::vector<Host> parse_host_list(std::string_view text);

// Open MPI's and DeepSpeed's form, "name slots=8", and MPICH's, "name:8"; one host per line, # begins a comment.
// `path` is named in errors. Throws UsageError that says which line and word.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& path);
// Reads the file first. UsageError that names it.
std::vector<Host> read_hostfile(const std::string& path);

// Sets how many ranks each host runs: `per_host` of them where that is not 0, else its slots. What is left at 0 is decided by
// the host: one per core. Throws UsageError if a host has fewer slots than were asked for.
void deal_ranks(std::vector<Host>& hosts, int per_host);

// The name without the user, for prefixes and messages.
std::string_view short_name(std::string_view host);

}  // namespace tutti::launch
