// mpi_scan.cpp: MPI_Scan and MPI_Exscan: where each rank begins in a file
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const long lines = 10 * (world.rank() + 1);
  const long begin = world.exscan(lines), end = world.scan(lines);
  std::printf("%ld-%ld\n", begin, end);
}

// prints:
//   0-10
//   10-30
//   30-60
