// mpi_gatherv.cpp: MPI_Gatherv: how many came from whom
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  const std::vector<int> part(static_cast<std::size_t>(world.rank() + 1), world.rank());
  const auto [values, counts] = world.gather_uneven(part);
  if (world.rank() == 0) {
    for (int value : values) std::printf("%d ", value);
    for (auto count : counts) std::printf("| %d ", int(count));
    std::printf("\n");
  }
}

// prints:
//   0 1 1 2 2 2 | 1 | 2 | 3
