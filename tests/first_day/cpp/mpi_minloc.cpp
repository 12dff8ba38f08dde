// mpi_minloc.cpp: MPI_MINLOC: which rank has the smallest value
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const double loss[] = {0.5, 0.25, 0.75};
  const auto [least, rank] =
      world.all_reduce(tutti::At<double>{loss[world.rank()], world.rank()}, {.op = tutti::argmin});
  std::printf("%g at %d\n", least, int(rank));
}

// prints:
//   0.25 at 1
//   0.25 at 1
//   0.25 at 1
