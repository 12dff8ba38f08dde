// least_work.cpp: what each verb must at least read and write.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "bench/limits.hpp"

namespace tutti::bench {

namespace {

std::vector<int> all_of(int arrays) {
  std::vector<int> list(static_cast<std::size_t>(arrays));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

}  // namespace

LeastWork least_work(const BenchCase& bench_case, int ranks) {
  const std::int64_t whole = (bench_case.bytes() + 3) / 4, block = whole / ranks;
  LeastWork work;
  const auto shape = [&](Plane plane) { work.plane = plane; };
  switch (bench_case.verb) {
    case Verb::all_reduce:
    case Verb::scan:
    case Verb::exscan:
      shape({ranks, bench_case.in_place ? 0 : ranks, whole, whole});
      work.portions = {{.inputs = all_of(ranks), .outputs = all_of(ranks), .count = whole}};
      break;
    case Verb::reduce:
      shape({ranks, bench_case.in_place ? 0 : 1, whole, whole});
      work.portions = {{.inputs = all_of(ranks), .outputs = {0}, .count = whole}};
      break;
    case Verb::reduce_scatter:
      shape({ranks, ranks, whole, block});
      for (int r = 0; r < ranks; ++r) {
        work.portions.push_back({.inputs = all_of(ranks), .outputs = {r}, .input_begin = r * block, .count = block});
      }
      break;
    case Verb::broadcast:
      shape({1, ranks - 1, whole, whole});
      work.portions = {{.inputs = {0}, .outputs = all_of(ranks - 1), .count = whole}};
      break;
    case Verb::all_gather:
    case Verb::gather: {
      const int outputs = bench_case.verb == Verb::gather ? 1 : ranks;
      shape({ranks, outputs, block, whole});
      for (int r = 0; r < ranks; ++r) {
        work.portions.push_back({.inputs = {r}, .outputs = all_of(outputs), .output_begin = r * block, .count = block});
      }
      break;
    }
    case Verb::scatter:
      shape({1, ranks, whole, block});
      for (int r = 0; r < ranks; ++r) {
        work.portions.push_back({.inputs = {0}, .outputs = {r}, .input_begin = r * block, .count = block});
      }
      break;
    case Verb::all_to_all:
    case Verb::permute:  // to one peer all of it, or to each a block: the same bytes
      shape({ranks, ranks, whole, whole});
      for (int r = 0; r < ranks; ++r)
        work.portions.push_back({.inputs = {r}, .outputs = {(r + 1) % ranks}, .count = whole});
      break;
    case Verb::send:
      if (bench_case.exchange != Exchange::ping_pong) return least_work({.verb = Verb::permute, .count = whole}, ranks);
      shape({1, 1, whole, whole});
      work.portions = {{.inputs = {0}, .outputs = {0}, .count = whole}};
      break;
    case Verb::barrier:
    case Verb::recv: break;
  }
  return work;
}

}  // namespace tutti::bench
