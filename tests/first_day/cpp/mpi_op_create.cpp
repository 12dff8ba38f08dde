// mpi_op_create.cpp: MPI_Op_create: complex numbers by hand
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

struct Complex {
  double re, im;
};

int main() {
  const tutti::Group world = tutti::init();
  std::vector<Complex> values(2, {1, 1});
  world.all_reduce(values, {.op = tutti::op([](Complex a, Complex b) {
                              return Complex{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
                            })});
  std::printf("%g %g\n", values[1].re, values[1].im);
}

// prints:
//   0 2
//   0 2
