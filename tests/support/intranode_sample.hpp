// intranode_sample.hpp: for the tests: one collective with its arrays on every rank, and what must come out.
// SPDX-License-Identifier: Apache-2.0
//
// The expected results come from the definition of each verb: whole arrays of all ranks are at hand, so they are plain copies,
// and reductions in rank order by the kernel that has its own tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/execution_start.hpp"

namespace tutti::intranode {

struct SampleShape {
  Verb verb = Verb::all_reduce;
  DType dtype = DType::float32;
  Op::Kind op = Op::Kind::sum;
  int size = 2;
  int root = 0;
  std::int64_t count = 1;  // as in Spec
  bool uneven = false;     // counts are drawn around `count`, zero among them
  bool in_place = false;
};

class Sample {
 public:
  Sample(const SampleShape& shape, std::uint64_t sequence, Random& random);

  /// What rank `rank` starts.
  [[nodiscard]] ExecutionStart start(int rank);
  /// Empty if the rank's memory is as it must be after the call; otherwise the first difference.
  [[nodiscard]] std::string difference(int rank) const;
  [[nodiscard]] std::string text() const;

 private:
  using Bytes = std::vector<std::byte>;
  struct Rank {
    Spec spec{};
    Bytes memory{};                        // input and output, with guards around them
    std::size_t input = 0, output = 0;     // where they begin
    std::int64_t inputs = 0, outputs = 0;  // elements
    Bytes original{}, expected{};
  };
  void draw_counts(Random& random);
  void draw_pairs(Random& random);
  void lay_out(Rank& rank, Random& random);
  void expect(int rank);
  void expect_reduction(Rank& rank, int ranks, std::int64_t begin);
  void put(Rank& rank, std::int64_t at, const Rank& from, std::int64_t begin, std::int64_t count);

  SampleShape shape_;
  std::uint64_t sequence_ = 0;
  std::int64_t element_ = 1;
  std::vector<std::vector<std::int64_t>> matrix_;  // all_to_all, uneven
  std::vector<std::int64_t> counts_;
  std::vector<std::pair<int, int>> pairs_;
  std::vector<Rank> ranks_;
};

}  // namespace tutti::intranode
