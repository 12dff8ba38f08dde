// mpi_hello.cpp: MPI_Comm_rank and MPI_Comm_size: the first program of every course
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  tutti::Group world = tutti::init();
  std::printf("hello from %d of %d\n", world.rank(), world.size());
}

// prints:
//   hello from 0 of 3
//   hello from 1 of 3
//   hello from 2 of 3
