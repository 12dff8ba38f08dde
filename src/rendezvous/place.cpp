// place.cpp: host identity and place.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/place.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/system_files.hpp"

namespace tutti::rendezvous {
namespace {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// Not the host name, if there is a choice: that may be "localhost" on every machine of a cluster.
std::string machine_id() {
  const std::string boot = boot_id();
  return boot.empty() ? host_name() : boot;
}

std::string container_id() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/uts", error).string();
}

}  // namespace

HostIdentity read_host_identity(const Environment& environment) {
  HostIdentity identity{.name = host_name(), .machine = machine_id(), .node = {}};
  identity.node = environment.get("TUTTI_HOST_ID").value_or(identity.machine + " " + container_id());
  return identity;
}

Place find_place(const Detected& detected, const NodeTable& table, std::string host) {
  const auto& nodes = table.node_of_rank;
  const std::uint32_t mine = nodes[static_cast<std::size_t>(detected.rank)];
  const auto local_before = std::count(nodes.begin(), nodes.begin() + detected.rank, mine);
  const auto local_all = std::count(nodes.begin(), nodes.end(), mine);
  Place place{.rank = detected.rank,
              .size = detected.size,
              .local_rank = static_cast<int>(local_before),
              .local_size = static_cast<int>(local_all),
              .node_rank = static_cast<int>(mine),
              .node_count = static_cast<int>(*std::ranges::max_element(nodes)) + 1,
              .root_rank = 0,
              .host = std::move(host)};
  if (detected.local_rank && detected.local_size) {
    place.local_rank = *detected.local_rank;
    place.local_size = *detected.local_size;
  }
  if (detected.node_rank && detected.node_count) {
    place.node_rank = *detected.node_rank;
    place.node_count = *detected.node_count;
  }
  return place;
}

}  // namespace tutti::rendezvous
