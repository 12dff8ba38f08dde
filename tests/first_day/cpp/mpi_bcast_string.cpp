// mpi_bcast_string.cpp: MPI_Bcast of a string whose length only the root knows
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>
#include <string>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::string name = world.rank() == 0 ? "input.dat" : "";
  name = world.broadcast_from(name);
  std::printf("%s\n", name.c_str());
}

// prints:
//   input.dat
//   input.dat
//   input.dat
