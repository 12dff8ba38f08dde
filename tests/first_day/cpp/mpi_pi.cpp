// mpi_pi.cpp: pi by numerical integration, as in the manuals of MPI
// SPDX-License-Identifier: Apache-2.0
// ranks: 4
#include <cmath>
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const int n = world.broadcast(world.rank() == 0 ? 1000 : 0);
  double mine = 0;
  for (int i = world.rank(); i < n; i += world.size()) {
    const double x = (i + 0.5) / n;
    mine += 4 / (1 + x * x);
  }
  const double pi = world.reduce(mine / n);
  if (world.rank() == 0) std::printf("%.4f\n", pi);
}

// prints:
//   3.1416
