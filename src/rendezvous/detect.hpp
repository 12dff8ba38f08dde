// detect.hpp: which launcher started this process, and the rank, size and rendezvous point that it provides.
// SPDX-License-Identifier: Apache-2.0
//
// A detector is a pure function of the environment: it recognises its launcher or returns nothing, and throws
// InvalidArgument, naming the variable, if the launcher's variables contradict each other. docs/rendezvous.md has the
// same information as a table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/environment.hpp"
#include "wire/address.hpp"

namespace tutti::rendezvous {

// Where the ranks meet. In all but the first two, rank 0 serves the store; they differ in how the others learn its
// address.
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
class Board;
struct RecordOnBoard {
  std::shared_ptr<Board> board;  // of the caller's own: an MPI communicator
};

using RendezvousPoint = std::variant<NoRendezvous, LauncherStore, FixedAddress, PortWindow, RecordInFile,
                                     RecordInPrivateFile, RecordInAgentStore, RecordInPmi, RecordInPmix, RecordOnBoard>;

// What a detector found. Optional fields are computed if the launcher does not provide them.
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

  // Whether the launcher guarantees that all ranks run on this machine.
  [[nodiscard]] bool on_one_node() const { return node_count == 1 || (local_size && *local_size == size); }
};

std::optional<Detected> detect_tuttirun(const Environment& environment);
std::optional<Detected> detect_torchrun(const Environment& environment);
std::optional<Detected> detect_open_mpi(const Environment& environment);
std::optional<Detected> detect_pmi(const Environment& environment);
std::optional<Detected> detect_by_hand(const Environment& environment);
std::optional<Detected> detect_slurm(const Environment& environment);
std::optional<Detected> detect_kubernetes(const Environment& environment);
std::optional<Detected> detect_incomplete(const Environment& environment);
std::optional<Detected> detect_alone(const Environment& environment);

struct Detector {
  std::string_view launcher;
  std::optional<Detected> (*detect)(const Environment&);
};

// In order of precedence; the last one always answers.
std::span<const Detector> all_detectors();
Detected detect(const Environment& environment);

// env://: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, whatever else is set. Names the variable that is missing.
Detected read_plain_environment(const Environment& environment);

// PyTorch's default port, if MASTER_PORT is not set.
inline constexpr std::uint16_t default_master_port = 29500;

}  // namespace tutti::rendezvous
