// kamping_allreduce_lambda.cpp: KaMPIng: allreduce_single with a lambda, and with std::plus
// SPDX-License-Identifier: Apache-2.0
// ranks: 2
#include <algorithm>
#include <cstdio>
#include <functional>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group comm = tutti::init();
  const int sum = comm.all_reduce(comm.rank() + 1, {.op = tutti::op(std::plus<>{})});
  const int most = comm.all_reduce(comm.rank() + 1, {.op = tutti::op([](int a, int b) { return std::max(a, b); })});
  std::printf("%d %d\n", sum, most);
}

// prints:
//   3 2
//   3 2
