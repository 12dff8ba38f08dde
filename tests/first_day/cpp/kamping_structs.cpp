// kamping_structs.cpp: KaMPIng: structs through allgather without a datatype
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <array>
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

enum class Kind : char { leaf, node };
struct Vertex {
  int id;
  Kind kind;
  std::array<float, 3> at;
};

int main() {
  const tutti::Group comm = tutti::init();
  const std::vector<Vertex> mine{{comm.rank(), Kind::node, {1, 2, 3}}};
  const std::vector<Vertex> all = comm.all_gather(mine);
  std::printf("%d %d %g\n", all[1].id, int(all[0].kind), all[1].at[2]);
}

// prints:
//   1 1 3
//   1 1 3
