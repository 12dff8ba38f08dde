// world.hpp: n ranks in this process, over loopback TCP, in shared memory or in a simulated cluster: the same test runs in all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/group.hpp>
#include <tutti/store.hpp>

namespace tutti::contract {

struct WorldOptions {
  int size = 2;
  int ranks_per_node = 0;  // 0: all on one node
  std::string table{};     // text of a selection table; empty: the built-in choice
  std::uint64_t seed = 1;  // of the simulation
  Duration timeout = std::chrono::seconds(60);
  std::vector<BackendFactory> backends{};  // asked before the built-in ones; not in the simulation
};

/// Ranks that live as long as the world does, and run one body after the other.
class World {
 public:
  virtual ~World() = default;
  [[nodiscard]] virtual int size() const = 0;
  /// Runs the body on every rank, with the group of all ranks, and returns when all have ended. An exception is a test failure;
  /// it also aborts the world, so that the others do not wait for their deadlines.
  virtual void run(const std::function<void(Group& world)>& body) = 0;
};

/// board: threads over TCP with a backend of the tests' own in front (board_backend.hpp).
enum class WorldKind : std::uint8_t { tcp, shm, simulated, board };
std::string_view name_of(WorldKind kind);

/// `backend` as in InitOptions.
std::unique_ptr<World> make_thread_world(const WorldOptions& options, const std::string& backend = "auto");
std::unique_ptr<World> make_simulated_world(const WorldOptions& options);
std::unique_ptr<World> make_world(WorldKind kind, const WorldOptions& options);

/// One rank of a world of threads, on its own: for tests in which ranks leave when they like. They share the store.
Group join_as_thread(const WorldOptions& options, int rank, const std::shared_ptr<Store>& store,
                     const std::string& backend);
/// What InitOptions calls it.
std::string backend_of(WorldKind kind);

/// The node of each rank: `ranks_per_node` consecutive ranks share one.
int node_of_rank(const WorldOptions& options, int rank);
int node_count(const WorldOptions& options);

/// Runs the body of one rank; turns what it throws into a failure of the test.
void run_rank(Group& world, const std::function<void(Group& world)>& body);

}  // namespace tutti::contract
