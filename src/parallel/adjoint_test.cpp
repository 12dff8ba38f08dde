// adjoint_test.cpp: the table of adjoints, checked as mathematics: <A x, y> = <x, A* y> summed over the ranks.
// SPDX-License-Identifier: Apache-2.0
//
// Each linear call is written out as a matrix over all ranks' elements by a small reference of its meaning. The adjoint of the
// table must be that matrix transposed.
#include "parallel/adjoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <tutti/error.hpp>

namespace tutti::parallel {
namespace {

using Vectors = std::vector<std::vector<double>>;  // one per rank

Vectors joined(const Vectors& x) {
  std::vector<double> all;
  for (const auto& part : x) all.insert(all.end(), part.begin(), part.end());
  return Vectors(x.size(), all);
}

Vectors sums(const Vectors& x) {
  std::vector<double> sum(x[0].size());
  for (const auto& part : x) std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
  return Vectors(x.size(), sum);
}

Vectors split(const Vectors& x, const Sizes& sizes) {
  Vectors parts;
  std::int64_t begin = 0;
  for (std::size_t r = 0; r < x.size(); ++r) {
    const std::int64_t length = sizes.empty() ? std::int64_t(x[r].size() / x.size()) : sizes[r];
    parts.emplace_back(x[r].begin() + begin, x[r].begin() + begin + length);
    begin += length;
  }
  return parts;
}

double weight(const Call& call, std::size_t size) {
  if (call.op.kind() == Op::Kind::mean) return 1.0 / double(size);
  return call.op.kind() == Op::Kind::premul ? call.op.factor() : 1.0;
}

Vectors scaled(Vectors x, double factor) {
  for (auto& part : x)
    for (double& value : part) value *= factor;
  return x;
}

/// Off the root, the caller's own array.
Vectors only_at_root(const Vectors& result, const Vectors& own, int root) {
  Vectors all = own;
  all[std::size_t(root)] = result[std::size_t(root)];
  return all;
}

Vectors scanned(const Call& call, const Vectors& x) {
  const int size = int(x.size());
  Vectors result(x.size(), std::vector<double>(x[0].size()));
  for (int r = 0; r < size; ++r) {
    for (int s = 0; s < size; ++s) {
      const bool before = call.reverse ? s > r : s < r;
      if (!before && !(s == r && call.verb == Verb::scan)) continue;
      for (std::size_t i = 0; i < x[0].size(); ++i) result[std::size_t(r)][i] += x[std::size_t(s)][i];
    }
  }
  return result;
}

Vectors moved(const Pairs& pairs, const Vectors& x) {
  Vectors result(x.size(), std::vector<double>(x[0].size()));
  for (const auto& [from, to] : pairs) result[std::size_t(to)] = x[std::size_t(from)];
  return result;
}

Vectors exchanged(const Vectors& x) {
  const std::size_t size = x.size(), block = x[0].size() / size;
  Vectors result = x;
  for (std::size_t r = 0; r < size; ++r)
    for (std::size_t s = 0; s < size; ++s)
      std::copy_n(x[s].begin() + std::ptrdiff_t(r * block), block, result[r].begin() + std::ptrdiff_t(s * block));
  return result;
}

/// What a call on arrays of one axis means.
Vectors meaning(const Call& call, const Vectors& x) {
  const Vectors& at_root = x;
  const auto root = std::size_t(call.root);
  switch (call.verb) {
    case Verb::all_reduce: return scaled(sums(x), weight(call, x.size()));
    case Verb::reduce: return only_at_root(scaled(sums(x), weight(call, x.size())), x, call.root);
    case Verb::broadcast: return Vectors(x.size(), at_root[root]);
    case Verb::all_gather: return joined(x);
    case Verb::gather: return only_at_root(joined(x), x, call.root);
    case Verb::reduce_scatter: return scaled(split(sums(x), call.sizes), weight(call, x.size()));
    case Verb::scatter: return split(Vectors(x.size(), at_root[root]), call.sizes);
    case Verb::all_to_all: return exchanged(x);
    case Verb::scan:
    case Verb::exscan: return scaled(scanned(call, x), weight(call, x.size()));
    case Verb::permute: return moved(call.pairs, x);
    default: return x;
  }
}

Vectors pulled_back(const Call& call, const Vectors& input, const Vectors& gradient) {
  const int size = int(input.size());
  const auto adjoint = [&](int rank) {
    const std::int64_t length = std::int64_t(input[std::size_t(rank)].size());
    return adjoint_of(call, std::span(&length, 1), rank, size);
  };
  Vectors result = scaled(meaning(adjoint(0).call, gradient), adjoint(0).scale);
  for (int rank = 0; rank < size; ++rank) {
    const auto r = std::size_t(rank);
    const Adjoint mine = adjoint(rank);
    EXPECT_EQ(mine.call, adjoint(0).call) << "all ranks make the same call";
    if (mine.adds_own)
      std::transform(result[r].begin(), result[r].end(), gradient[r].begin(), result[r].begin(), std::plus<>());
    if (mine.is_zero) result[r].assign(input[r].size(), 0.0);
  }
  return result;
}

double product(const Vectors& a, const Vectors& b) {
  double sum = 0;
  for (std::size_t r = 0; r < a.size(); ++r) {
    EXPECT_EQ(a[r].size(), b[r].size()) << "rank " << r;
    sum += std::inner_product(a[r].begin(), a[r].end(), b[r].begin(), 0.0);
  }
  return sum;
}

Vectors numbers(const std::vector<std::size_t>& lengths, double seed) {
  Vectors x;
  for (const std::size_t length : lengths) {
    x.emplace_back(length);
    for (double& value : x.back()) value = seed = std::fmod(seed * 7.3 + 1.7, 5.0) - 2.0;
  }
  return x;
}

void expect_adjoint(const Call& call, const std::vector<std::size_t>& lengths) {
  const Vectors x = numbers(lengths, 0.3);
  const Vectors y = meaning(call, x);
  std::vector<std::size_t> result_lengths;
  for (const auto& part : y) result_lengths.push_back(part.size());
  const Vectors g = numbers(result_lengths, 1.1);
  EXPECT_NEAR(product(y, g), product(x, pulled_back(call, x, g)), 1e-9) << encode(call);
}

TEST(Adjoint, EveryLinearCallHasItsTranspose) {
  const std::vector<std::size_t> even{6, 6, 6};
  for (const Op& op : {Op::sum, Op::mean, Op::premul(0.25)}) {
    expect_adjoint({.verb = Verb::all_reduce, .op = op}, even);
    expect_adjoint({.verb = Verb::reduce, .op = op, .root = 1}, even);
    expect_adjoint({.verb = Verb::reduce_scatter, .op = op}, even);
    if (op == Op::mean) continue;  // scans have none
    expect_adjoint({.verb = Verb::scan, .op = op}, even);
    expect_adjoint({.verb = Verb::exscan, .op = op}, even);
  }
  expect_adjoint({.verb = Verb::broadcast, .root = 2}, even);
  expect_adjoint({.verb = Verb::all_gather}, even);
  expect_adjoint({.verb = Verb::gather, .root = 1}, even);
  expect_adjoint({.verb = Verb::scatter, .root = 1}, even);
  expect_adjoint({.verb = Verb::all_to_all}, even);
  expect_adjoint({.verb = Verb::permute, .pairs = {{0, 2}, {1, 0}}}, even);
}

TEST(Adjoint, UnevenCallsHaveTheirs) {
  const Sizes sizes{1, 0, 4};
  expect_adjoint({.verb = Verb::all_gather, .uneven = true, .sizes = sizes}, {1, 0, 4});
  expect_adjoint({.verb = Verb::reduce_scatter, .sizes = sizes}, {5, 5, 5});
  expect_adjoint({.verb = Verb::scatter, .root = 2, .sizes = sizes}, {5, 5, 5});
}

TEST(Adjoint, MinAndMaxChooseAndTheRestIsRefusedByName) {
  const std::int64_t shape = 4;
  EXPECT_EQ(adjoint_of({.verb = Verb::all_reduce, .op = Op::max}, {&shape, 1}, 0, 2).kind, Adjoint::Kind::select);
  for (const Op& op : {Op::product, Op::band, Op::bor, Op::bxor}) {
    EXPECT_THROW((void)adjoint_of({.verb = Verb::all_reduce, .op = op}, {&shape, 1}, 0, 2), Unsupported);
  }
  EXPECT_THROW((void)adjoint_of({.verb = Verb::scan, .op = Op::min}, {&shape, 1}, 0, 2), Unsupported);
  EXPECT_THROW((void)adjoint_of({.verb = Verb::all_gather, .uneven = true}, {&shape, 1}, 0, 2), InvalidArgument);
}

}  // namespace
}  // namespace tutti::parallel
