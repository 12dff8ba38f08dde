// detect.hpp: which launcher started this process, and what it says about rank, size and meeting point.
// SPDX-License-Identifier: Apache-2.0
//
// A detector is a pure function over the environment: it recognises its launcher or gives nothing, and throws
// InvalidArgument, naming the variable, where the launcher's variables contradict themselves. docs/rendezvous.md has the
// same knowledge as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/environment.hpp"
#include "wire/address.hpp"

namespace tutti::rendezvous {

// Where the ranks meet. In all but the first two, rank 0 serves the store; they differ in how the others learn where.
struct NoRendezvous {};  // a process alone
struct LauncherStore {
  wire::HostPort where;  // served by the launcher
};
struct FixedAddress {
  wire::HostPort where;  // agreed on beforehand
};
struct PortWindow {
  std::string host;  // of rank 0, which takes the first free port
  std::uint16_t first_port = 0;
  int ports = 0;
};
struct RecordInFile {
  std::string path;
};
struct RecordInPrivateFile {
  std::string name;  // in the user's own folder on this machine
};
struct RecordInAgentStore {
  wire::HostPort where;  // torchrun's agent
};
struct RecordInPmi {
  int fd = -1;
};
struct RecordInPmix {};

using RendezvousPoint = std::variant<NoRendezvous, LauncherStore, FixedAddress, PortWindow, RecordInFile,
                                     RecordInPrivateFile, RecordInAgentStore, RecordInPmi, RecordInPmix>;

// What a detector found. The optional fields are left to be computed where the launcher does not tell.
struct Detected {
  std::string launcher;  // as people call it
  int rank = 0;
  int size = 1;
  std::optional<int> local_rank{};
  std::optional<int> local_size{};
  std::optional<int> node_rank{};
  std::optional<int> node_count{};
  RendezvousPoint meeting = NoRendezvous{};
  std::string job{};  // tells this job, and this attempt of it, from others that meet at the same place

  // Whether the launcher promises that all ranks run on this machine.
  [[nodiscard]] bool on_one_node() const { return node_count == 1 || (local_size && *local_size == size); }
};

std::optional<Detected> detect_tuttirun(const Environment& environment);
std::optional<Detected> detect_torchrun(const Environment& environment);
std::optional<Detected> detect_open_mpi(const Environment& environment);
std::optional<Detected> detect_pmi(const Environment& environment);
std::optional<Detected> detect_by_hand(const Environment& environment);
std::optional<Detected> detect_slurm(const Environment& environment);
std::optional<Detected> detect_incomplete(const Environment& environment);
std::optional<Detected> detect_alone(const Environment& environment);

struct Detector {
  std::string_view launcher;
  std::optional<Detected> (*detect)(const Environment&);
};

// In the order in which they are asked; the last one always answers.
std::span<const Detector> all_detectors();
Detected detect(const Environment& environment);

// env://: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, whatever else is set. Says which of them is missing.
Detected read_plain_environment(const Environment& environment);

// The port of PyTorch's habit, where MASTER_PORT is not set.
inline constexpr std::uint16_t default_master_port = 29500;

}  // namespace tutti::rendezvous
