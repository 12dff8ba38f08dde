// mpi_alltoall.cpp: MPI_Alltoall: the transpose
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<int> row;
  for (int i = 0; i < world.size(); ++i) row.push_back(10 * world.rank() + i);
  const std::vector<int> column = world.all_to_all(row);
  std::printf("%d %d %d\n", column[0], column[1], column[2]);
}

// prints:
//   0 10 20
//   1 11 21
//   2 12 22
