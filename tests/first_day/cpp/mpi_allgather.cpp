// mpi_allgather.cpp: MPI_Allgather of one value each
// SPDX-License-Identifier: Apache-2.0
// ranks: 4
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const std::vector<int> ranks = world.all_gather(10 * world.rank());
  if (world.rank() == 3) std::printf("%d %d %d %d\n", ranks[0], ranks[1], ranks[2], ranks[3]);
}

// prints:
//   0 10 20 30
