// mpi_wrong_root.cpp: a root that is not in the group
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group world = tutti::init();
  std::vector<int> x(2);
  world.broadcast(x, {.root = 2});
}

// raises on every rank: …broadcast: root 2 is not in the group, whose ranks are 0 to 1…
