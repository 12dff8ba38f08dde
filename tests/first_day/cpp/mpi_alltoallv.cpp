// mpi_alltoallv.cpp: MPI_Alltoallv: everyone sends what it has for each
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const std::vector<int> data = world.rank() == 0 ? std::vector<int>{1, 2, 3} : std::vector<int>{4, 5};
  const tutti::Sizes sizes = world.rank() == 0 ? tutti::Sizes{1, 2} : tutti::Sizes{2, 0};
  const std::vector<int> got = world.all_to_all(data, {.split_sizes = sizes});
  for (int each : got) std::printf("%d", each);
  std::printf("\n");
}

// prints:
//   145
//   23
