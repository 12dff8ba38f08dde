// mpi_iallreduce.cpp: MPI_Iallreduce and MPI_Waitall
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<float> x(100, 1), y(100, 2);
  std::vector<tutti::Work> works;
  works.push_back(world.start(tutti::AllReduce{.data = x}));
  works.push_back(world.start(tutti::AllReduce{.data = y, .op = tutti::Op::max}));
  tutti::wait_all(works);
  std::printf("%g %g\n", x[0], y[99]);
}

// prints:
//   2 2
//   2 2
