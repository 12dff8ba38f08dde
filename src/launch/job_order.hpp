// job_order.hpp: what an agent is told of the job, and what it tells of its host; values with an encoding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>

#include "launch/host_tree.hpp"
#include "launch/hosts.hpp"
#include "launch/options.hpp"

namespace tutti::launch {

// The same for every agent: each knows from the first frame which of the hosts is its own.
struct JobOrder {
  std::vector<Host> hosts = {};
  int fan_out = 16;
  Duration silence{};                   // after which a node that says nothing is lost
  Duration start_timeout{};             // for an agent to say that it is ready
  std::vector<std::string> shell = {};  // the remote shell and its options
  std::string tuttirun = {};            // its path, tried before PATH
  std::string job = {}, secret = {};
  int restart = 0;          // how often the job was started before
  std::string folder = {};  // where the ranks run
  RunOptions options = {};  // program, arguments, variables, backend, binding, grace
  std::vector<std::pair<std::string, std::string>> environment = {};  // of tuttirun, without what belongs to its host

  [[nodiscard]] HostTree tree() const { return {.hosts = static_cast<int>(hosts.size()), .fan_out = fan_out}; }
};

struct HostFacts {
  int ranks = 0;                            // that it will run
  std::string token = {};                   // what its listeners say to those who connect
  std::vector<std::string> addresses = {};  // with a port each; the best first

  friend bool operator==(const HostFacts&, const HostFacts&) = default;
};

using ReachTable = std::vector<HostFacts>;  // per host

// What one host found: for every host, which of its addresses answered.
struct Reach {
  std::vector<bool> answered = {};  // per address
  std::string problem = {};         // with the first address
};
using ReachReport = std::vector<Reach>;  // per host

struct StartOrder {
  std::vector<int> ranks = {};               // per host
  std::vector<std::string> interfaces = {};  // per host: the address that the others reach; "": loopback will do
  std::string master_address = {};
  int master_port = 0;
  std::string store = {};
};

std::vector<std::byte> encode(const JobOrder& order);
std::vector<std::byte> encode(const HostFacts& facts);
std::vector<std::byte> encode(const ReachTable& table);
std::vector<std::byte> encode(const ReachReport& report);
std::vector<std::byte> encode(const StartOrder& order);

// Throw MalformedMessage.
JobOrder decode_job_order(std::span<const std::byte> bytes);
HostFacts decode_host_facts(std::span<const std::byte> bytes);
ReachTable decode_reach_table(std::span<const std::byte> bytes);
ReachReport decode_reach_report(std::span<const std::byte> bytes);
StartOrder decode_start_order(std::span<const std::byte> bytes);

}  // namespace tutti::launch
