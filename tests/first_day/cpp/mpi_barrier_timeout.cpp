// mpi_barrier_timeout.cpp: a rank that does not come to MPI_Barrier
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <chrono>
#include <cstdio>

#include <tutti/tutti.hpp>

int main() {
  using namespace std::chrono_literals;
  const tutti::Group world = tutti::init();
  if (world.rank() == 1) {
    world.barrier({.timeout = 0.2s});
  } else {
    (void)world.all_reduce(1, {.timeout = 30s});
  }
}

// raises on rank 0: …all_reduce…barrier…
// raises on rank 1: …barrier…
