// mpi_bcast_in_place.cpp: MPI_Bcast of an array
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<int> values(3, world.rank());
  world.broadcast(values, {.root = 1});
  std::printf("%d %d %d\n", values[0], values[1], values[2]);
}

// prints:
//   1 1 1
//   1 1 1
//   1 1 1
