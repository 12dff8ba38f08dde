// mpi_wrong_type.cpp: MPI_FLOAT on one side and MPI_DOUBLE on the other
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<float> x(4);
  std::vector<double> y(4);
  if (world.rank() == 0) world.all_reduce(x);
  else world.all_reduce(y);
}

// raises on every rank: …float32 × 4…float64 × 4…
