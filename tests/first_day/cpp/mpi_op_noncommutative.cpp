// mpi_op_noncommutative.cpp: MPI_Op_create with commute = 0: the order of ranks is kept
// SPDX-License-Identifier: Apache-2.0
// ranks: 4
#include <cstdio>

#include <tutti/tutti.hpp>

struct Text {
  char letters[8];
  int length;
};

int main() {
  const tutti::Group world = tutti::init();
  Text text{};
  text.letters[text.length++] = char('a' + world.rank());
  const auto append = tutti::op(
      [](Text a, Text b) {
        for (int i = 0; i < b.length; ++i) a.letters[a.length++] = b.letters[i];
        return a;
      },
      {.commutative = false});
  text = world.reduce(text, {.root = 2, .op = append});
  if (world.rank() == 2) std::printf("%s\n", text.letters);
}

// prints:
//   abcd
