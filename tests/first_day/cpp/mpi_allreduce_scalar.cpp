// mpi_allreduce_scalar.cpp: MPI_Allreduce of one number
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  float sum = world.all_reduce(1.5f);
  double largest = world.all_reduce(0.5 * world.rank(), {.op = tutti::Op::max});
  std::printf("%g %g\n", sum, largest);
}

// prints:
//   4.5 1
//   4.5 1
//   4.5 1
