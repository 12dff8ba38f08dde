// arrays.cpp: the contents of the ranks' arrays before a call, and the expected contents after it.
// SPDX-License-Identifier: Apache-2.0
#include "bench/arrays.hpp"

#include <algorithm>
#include <complex>
#include <cstring>

namespace tutti::bench {

namespace {

template <class T>
void store(std::byte* to, int value) {
  const T element = static_cast<T>(static_cast<float>(value));
  std::memcpy(to, &element, sizeof element);
}

void store_element(DType dtype, std::byte* to, int value) {
  switch (dtype) {
    case DType::boolean: return store<std::uint8_t>(to, value != 0 ? 1 : 0);
    case DType::int8: return store<std::int8_t>(to, value);
    case DType::uint8: return store<std::uint8_t>(to, value);
    case DType::int16: return store<std::int16_t>(to, value);
    case DType::uint16: return store<std::uint16_t>(to, value);
    case DType::int32: return store<std::int32_t>(to, value);
    case DType::uint32: return store<std::uint32_t>(to, value);
    case DType::int64: return store<std::int64_t>(to, value);
    case DType::uint64: return store<std::uint64_t>(to, value);
    case DType::float16: return store<float16>(to, value);
    case DType::bfloat16: return store<bfloat16>(to, value);
    case DType::float32: return store<float>(to, value);
    case DType::float64: return store<double>(to, value);
    case DType::complex64: return store<std::complex<float>>(to, value);
    case DType::complex128: return store<std::complex<double>>(to, value);
    case DType::float8_e4m3: return store<float8_e4m3>(to, value);
    case DType::float8_e5m2: return store<float8_e5m2>(to, value);
  }
}

}  // namespace

int pattern(int rank, std::int64_t index) {
  const std::int64_t i = index % pattern_period;
  return static_cast<int>((rank * 3 + i * i + i / 16) % 5);
}

Pattern::Pattern(DType dtype, RankRange ranks)
    : dtype_(dtype),
      element_bytes_(static_cast<std::int64_t>(size_of(dtype))),
      bytes_(static_cast<std::size_t>(2 * pattern_period * element_bytes_)) {
  for (std::int64_t i = 0; i < 2 * pattern_period; ++i) {
    int sum = 0;
    for (int rank = ranks.begin; rank < ranks.end; ++rank) sum += pattern(rank, i);
    store_element(dtype_, bytes_.data() + i * element_bytes_, sum);
  }
}

const std::byte* Pattern::at(std::int64_t shift) const {
  return bytes_.data() + shift % pattern_period * element_bytes_;
}

void Pattern::write(void* to, std::int64_t count, std::int64_t shift) const {
  const std::byte* period = at(shift);
  auto* bytes = static_cast<std::byte*>(to);
  for (std::int64_t done = 0; done < count; done += pattern_period) {
    const std::int64_t now = std::min(pattern_period, count - done);
    std::memcpy(bytes + done * element_bytes_, period, static_cast<std::size_t>(now * element_bytes_));
  }
}

std::int64_t Pattern::count_wrong(const void* from, std::int64_t count, std::int64_t shift) const {
  const std::byte* period = at(shift);
  const auto* bytes = static_cast<const std::byte*>(from);
  std::int64_t wrong = 0;
  for (std::int64_t done = 0; done < count; done += pattern_period) {
    const std::int64_t now = std::min(pattern_period, count - done);
    const std::byte* piece = bytes + done * element_bytes_;
    if (std::memcmp(piece, period, static_cast<std::size_t>(now * element_bytes_)) == 0) continue;
    for (std::int64_t i = 0; i < now * element_bytes_; i += element_bytes_) {
      wrong += std::memcmp(piece + i, period + i, static_cast<std::size_t>(element_bytes_)) != 0;
    }
  }
  return wrong;
}

ArrayCounts array_counts(const BenchCase& bench_case, int ranks) {
  const std::int64_t whole = bench_case.count, block = bench_case.count / ranks;
  switch (bench_case.verb) {
    case Verb::barrier: return {};
    case Verb::broadcast: return {.in = whole};
    case Verb::all_gather:
    case Verb::gather: return {.in = block, .out = whole};
    case Verb::reduce_scatter:
    case Verb::scatter: return {.in = whole, .out = block};
    default: return {.in = whole, .out = bench_case.in_place ? 0 : whole};
  }
}

std::vector<Part> expected_parts(const BenchCase& bench_case, RankPosition position, int root) {
  const std::int64_t whole = bench_case.count, block = bench_case.count / position.size;
  const RankRange all{0, position.size}, root_only{root, root + 1};
  const auto joined = [&](std::int64_t input_begin) {
    std::vector<Part> parts;
    for (int r = 0; r < position.size; ++r) parts.push_back({r * block, block, {r, r + 1}, input_begin});
    return parts;
  };
  const auto from = [&](int rank) { return std::vector<Part>{{0, whole, {rank, rank + 1}, 0}}; };
  switch (bench_case.verb) {
    case Verb::all_reduce: return {{0, whole, all, 0}};
    case Verb::reduce: return position.rank == root ? std::vector<Part>{{0, whole, all, 0}} : std::vector<Part>{};
    case Verb::broadcast: return from(root);
    case Verb::all_gather: return joined(0);
    case Verb::gather: return position.rank == root ? joined(0) : std::vector<Part>{};
    case Verb::reduce_scatter: return {{0, block, all, position.rank * block}};
    case Verb::scatter: return {{0, block, root_only, position.rank * block}};
    case Verb::all_to_all: return joined(position.rank * block);
    case Verb::scan: return {{0, whole, {0, position.rank + 1}, 0}};
    // MPI leaves rank 0's result open.
    case Verb::exscan:
      return position.rank == 0 ? std::vector<Part>{} : std::vector<Part>{{0, whole, {0, position.rank}, 0}};
    case Verb::permute:
    case Verb::send: return from((position.rank + position.size - 1) % position.size);
    case Verb::barrier:
    case Verb::recv: return {};
  }
  return {};
}

}  // namespace tutti::bench
