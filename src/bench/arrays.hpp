// arrays.hpp: what ranks write into their arrays, and what must come out of a call.
// SPDX-License-Identifier: Apache-2.0
//
// Element i of rank r's input is pattern(r, i + shift), small whole numbers, so that sums are exact in every dtype that holds
// them; the shift changes from batch to batch. The pattern repeats after a number of elements that is prime, so that a
// block in the wrong place is noticed. It stays in the first cache: writing an array reads no other memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/bench_case.hpp"

namespace tutti::bench {

inline constexpr std::int64_t pattern_period = 1021;

/// The value itself: 0 to 4.
int pattern(int rank, std::int64_t index);

struct RankRange {
  int begin = 0, end = 1;
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// The sum of the patterns of some ranks, as elements of a dtype.
class Pattern {
 public:
  Pattern(DType dtype, RankRange ranks);
  void write(void* to, std::int64_t count, std::int64_t shift) const;
  [[nodiscard]] std::int64_t count_wrong(const void* from, std::int64_t count, std::int64_t shift) const;

 private:
  [[nodiscard]] const std::byte* at(std::int64_t shift) const;
  DType dtype_;
  std::int64_t element_bytes_;
  std::vector<std::byte> bytes_;  // two periods, so that each shift finds one whole
};

/// Elements of the two arrays of a call on one rank; `out` 0: the call works in place.
struct ArrayCounts {
  std::int64_t in = 0, out = 0;
  friend bool operator==(const ArrayCounts&, const ArrayCounts&) = default;
};
ArrayCounts array_counts(const BenchCase& bench_case, int ranks);

struct RankPosition {
  int rank = 0, size = 1;
};

/// A stretch of the result: the sum of what these ranks hold in their inputs from `input_begin` on.
struct Part {
  std::int64_t begin = 0, count = 0;
  RankRange ranks{};
  std::int64_t input_begin = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// What one rank must find; nothing where the verb promises nothing to it.
std::vector<Part> expected_parts(const BenchCase& bench_case, RankPosition position, int root);

}  // namespace tutti::bench
