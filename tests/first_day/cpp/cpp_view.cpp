// cpp_view.cpp: a matrix in somebody else's memory
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<double> memory(6, 1.0);
  double* corner = memory.data();
  world.all_reduce(tutti::view(corner, {2, 2}, {3, 1}));
  for (double each : memory) std::printf("%g", each);
  std::printf("\n");
}

// prints:
//   221221
//   221221
