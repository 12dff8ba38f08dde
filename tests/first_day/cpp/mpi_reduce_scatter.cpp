// mpi_reduce_scatter.cpp: MPI_Reduce_scatter_block
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const std::vector<float> x{1, 2, 3, 4};
  const std::vector<float> part = world.reduce_scatter(x);
  std::printf("%g %g\n", part[0], part[1]);
}

// prints:
//   2 4
//   6 8
