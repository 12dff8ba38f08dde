// limits.hpp: what this machine allows: how fast a cache line gets from core to core, and how fast memory is.
// SPDX-License-Identifier: Apache-2.0
//
// The limit of a case is measured, not computed: threads of one process that share all arrays do the least a verb can do, which is to
// read every input once and to write every output once, each thread its part, without waiting for each other. As in the
// benchmark the inputs are written first, each by its owner, so that they lie in the caches where they would lie. Stores go through the
// caches or past them, whichever is faster. No call is faster than a cache line from one core to another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/bench_case.hpp"
#include "bench/stream.hpp"

namespace tutti::bench {

/// One-way, in µs: half of a round trip between two cores.
double measure_line_us();

struct MemoryBandwidth {  // GB/s, reads and writes together; arrays larger than caches
  double read = 0;
  double copy = 0, copy_non_temporal = 0;
  double add = 0, add_non_temporal = 0;  // two arrays into a third
};

/// The arrays of a verb, as positions in one row of inputs and one of outputs.
struct Plane {
  int input_arrays = 0, output_arrays = 0;
  std::int64_t input_count = 0, output_count = 0;  // elements of each
};
struct Portion {
  std::vector<int> inputs{}, outputs{};
  std::int64_t input_begin = 0, output_begin = 0, count = 0;
};
struct LeastWork {
  Plane plane{};
  std::vector<Portion> portions{};
};
/// For float32; other dtypes move the same bytes.
LeastWork least_work(const BenchCase& bench_case, int ranks);

class Limits {
 public:
  /// As many threads as ranks, at most one for each core.
  explicit Limits(int ranks);
  [[nodiscard]] std::string describe() const;
  /// µs that the case takes at least.
  [[nodiscard]] double us_of(const BenchCase& bench_case) const;

 private:
  int ranks_, threads_;
  double line_us_;
  MemoryBandwidth memory_;
};

}  // namespace tutti::bench
