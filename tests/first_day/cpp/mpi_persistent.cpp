// mpi_persistent.cpp: MPI_Allreduce_init and MPI_Start
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<int> x(4, 1);
  tutti::Prepared step = world.prepare(tutti::AllReduce{.data = x});
  for (int i = 0; i < 3; ++i) {
    step.start();
    step.wait();
  }
  std::printf("%d\n", x[3]);
}

// prints:
//   8
//   8
