// kamping_allgatherv.cpp: KaMPIng: allgatherv in one line
// SPDX-License-Identifier: Apache-2.0
// ranks: 3
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group comm = tutti::init();
  const std::vector<double> v(static_cast<std::size_t>(comm.rank()), 0.5);
  const auto [values, counts] = comm.all_gather_uneven(v);
  if (comm.rank() == 0) std::printf("%zu values, %zu ranks\n", values.size(), counts.size());
}

// prints:
//   3 values, 3 ranks
