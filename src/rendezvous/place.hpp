// place.hpp: a rank's place, from what the launcher says and from who shares a node with whom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tutti/connector.hpp>

#include "rendezvous/detect.hpp"
#include "rendezvous/membership.hpp"

namespace tutti::rendezvous {

// Names for this machine. `node` is TUTTI_HOST_ID where that is set.
struct HostIdentity {
  std::string name;     // the host name
  std::string machine;  // the same for all processes since the machine started
  std::string node;     // the same for processes that also share a container
};

HostIdentity read_host_identity(const Environment& environment);

// A pure function. The launcher's word counts, for rank and size together; what it does not tell is computed from the
// table, where local ranks follow the order of ranks.
Place find_place(const Detected& detected, const NodeTable& table, std::string host);

}  // namespace tutti::rendezvous
