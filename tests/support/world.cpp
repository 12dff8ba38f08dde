// world.cpp: what all worlds share.
// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <gtest/gtest.h>

#include "board_backend.hpp"

namespace tutti::contract {

std::string_view name_of(WorldKind kind) {
  constexpr std::string_view names[] = {"tcp", "shm", "simulated", "board"};
  return names[static_cast<int>(kind)];
}

std::unique_ptr<World> make_world(WorldKind kind, const WorldOptions& options) {
  if (kind == WorldKind::simulated) return make_simulated_world(options);
  if (kind == WorldKind::board) {
    WorldOptions extended = options;
    extended.backends.push_back(board_backend(std::make_shared<Board>()));
    return make_thread_world(extended, backend_of(kind));
  }
  return make_thread_world(options, backend_of(kind));
}

std::string backend_of(WorldKind kind) { return kind == WorldKind::shm ? "shm" : "native"; }

int node_of_rank(const WorldOptions& options, int rank) {
  return options.ranks_per_node > 0 ? rank / options.ranks_per_node : 0;
}

int node_count(const WorldOptions& options) { return node_of_rank(options, options.size - 1) + 1; }

void run_rank(Group& world, const std::function<void(Group& world)>& body) {
  try {
    body(world);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << world.rank() << " of " << world.size() << " threw: " << error.what();
    try {
      world.abort("another rank's test body failed");
    } catch (const std::exception&) {
      // The world is broken already: the others know.
    }
  }
}

}  // namespace tutti::contract
