// mpi_comm_split.cpp: MPI_Comm_split into rows
// SPDX-License-Identifier: Apache-2.0
// ranks: 4
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const tutti::Group row = world.split(world.rank() / 2);
  std::printf("%d: %d of %d, sum %d\n", world.rank(), row.rank(), row.size(), row.all_reduce(world.rank()));
}

// prints:
//   0: 0 of 2, sum 1
//   1: 1 of 2, sum 1
//   2: 0 of 2, sum 5
//   3: 1 of 2, sum 5
