// mpi_scatter_gather.cpp: MPI_Scatter, some work, MPI_Gather
// SPDX-License-Identifier: Apache-2.0
// ranks: 4
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<double> all;
  if (world.rank() == 0) all = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<double> mine = world.scatter_from(all);
  for (double& each : mine) each *= each;
  all = world.gather(mine);
  for (double each : all) std::printf("%g ", each);
  if (world.rank() == 0) std::printf("\n");
}

// prints:
//   1 4 9 16 25 36 49 64
