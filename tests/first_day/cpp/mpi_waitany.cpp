// mpi_waitany.cpp: MPI_Waitany: each as it comes
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<std::vector<int>> arrays(3, std::vector<int>(10, 1));
  std::vector<tutti::Work> works;
  for (auto& array : arrays) works.push_back(world.start(tutti::AllReduce{.data = array}));
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    const std::size_t which = tutti::wait_any(works);
    works[which].wait();
    works[which] = tutti::Work();
    sum += arrays[which][0];
  }
  std::printf("%d\n", sum);
}

// prints:
//   6
//   6
