// mpi_bcast_struct.cpp: MPI_Bcast of a struct, without MPI_Type_create_struct
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>

#include <tutti/tutti.hpp>

struct Config {
  int steps;
  double dt;
  char name[8];
};

int main() {
  const tutti::Group world = tutti::init();
  Config config{};
  if (world.rank() == 0) config = {100, 0.25, "heat"};
  config = world.broadcast(config);
  std::printf("%d %g %s\n", config.steps, config.dt, config.name);
}

// prints:
//   100 0.25 heat
//   100 0.25 heat
