// connector.hpp: the result of rendezvous: this rank's number, the other ranks, and a store that all of them share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/clock.hpp>
#include <tutti/store.hpp>

namespace tutti {

/// A rank's position in its job.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;
  int node_rank = 0;
  int node_count = 1;
  int root_rank = 0;  // the rank that hands out tables and ids
  std::string host;   // for messages
};

/// How init() finds the others. Empty fields come from the launcher's environment.
struct InitOptions {
  std::string backend = "auto";
  std::string init_method;  // "env://", "tcp://host:port", "file:///path"; empty: detect the launcher
  int rank = -1;
  int size = -1;
  Duration timeout = std::chrono::seconds(300);  // for the rendezvous, and the default deadline of every call
  /// A communicator of an MPI that the program has initialised, as MPI_Comm_c2f() gives it: its ranks are the job's, and it is where
  /// they meet, whatever the launcher's environment says.
  std::optional<int> mpi_communicator{};
  std::vector<BackendFactory>
      backends{};  // of the program's own, asked before the built-in ones; the same on all ranks
};

/// Communication between the ranks before any group exists. Slow and for small values only; everything else is built on
/// it.
class Connector {
 public:
  virtual ~Connector() = default;
  [[nodiscard]] virtual const Place& place() const = 0;
  /// A sentence that says which launcher was recognised and where the rendezvous address and the secret came from.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// The address of the host where the ranks met; empty if there was none. Used to choose a network interface.
  [[nodiscard]] virtual std::string meeting_host() const { return {}; }
  /// The store that the whole job shares. The connector keeps its own keys under a prefix.
  [[nodiscard]] virtual std::shared_ptr<Store> store() const = 0;
  /// The per-job secret, as 32 bytes.
  [[nodiscard]] virtual std::string_view secret() const = 0;

  virtual void barrier(TimePoint deadline) = 0;
  /// The root's value, on every rank.
  virtual std::string broadcast(std::string_view value, int root, TimePoint deadline) = 0;
  /// Every rank's value, on every rank, in rank order.
  virtual std::vector<std::string> exchange(std::string_view value, TimePoint deadline) = 0;
};

/// Finds the other ranks as `options` and this process's environment say. A process alone gets a group of one, without
/// a socket.
std::unique_ptr<Connector> connect(const InitOptions& options = {});

}  // namespace tutti
