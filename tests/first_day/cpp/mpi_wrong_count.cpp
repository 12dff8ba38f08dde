// mpi_wrong_count.cpp: counts that differ in one MPI_Allreduce
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<double> x(static_cast<std::size_t>(3 + world.rank()));
  world.all_reduce(x);
}

// raises on every rank: …all_reduce…float64 × 3…
