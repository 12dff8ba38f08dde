// mpi_comm_create.cpp: MPI_Group_incl and MPI_Comm_create_group
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const tutti::Group ends = world.subgroup({0, 2});
  if (ends.rank() >= 0) std::printf("%d\n", ends.all_reduce(1));
}

// prints:
//   2
//   2
