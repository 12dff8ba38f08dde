// block_layout.hpp: how the arrays of a request fall into blocks, one per rank.
// SPDX-License-Identifier: Apache-2.0
//
// A verb that joins or splits works along one axis: rank r's block is a slice of it. Slices along the first axis of a
// contiguous array lie one after the other, and a plan can work on them where they are; all others are packed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tutti/request.hpp>

namespace tutti {

/// An array cut along an axis, one slice per rank.
struct Slices {
  View whole;
  int axis = 0;
  std::vector<std::int64_t> sizes;  // along the axis, per rank

  [[nodiscard]] View slice(int rank) const;
  /// Elements of rank r's slice.
  [[nodiscard]] std::int64_t count(int rank) const;
  /// Whether the slices lie one after the other in memory, each without gaps.
  [[nodiscard]] bool adjacent() const;
};

/// Shape arithmetic, the same for every backend. The request has been checked; sizes are resolved (see resolve_sizes).
struct BlockLayout {
  Verb verb = Verb::barrier;
  int rank = 0;
  int size = 1;
  bool input_in_blocks = false;   // reduce_scatter, scatter at the root, all_to_all
  bool output_in_blocks = false;  // all_gather, gather at the root, all_to_all
  int input_axis = 0;
  int output_axis = 0;
  std::vector<std::int64_t> input_sizes{};  // along the input's axis, per rank (only where it is in blocks)
  std::vector<std::int64_t> output_sizes{};
  std::vector<std::int64_t> output_shape{};  // of this rank's output; empty vector and !has_output where there is none
  bool has_output = false;
};

/// Fills in sizes per rank where the request leaves them out and they are all alike: an array cut into equal parts, or equal
/// parts joined. Throws InvalidArgument where the axis does not divide. Reuses the memory of `layout`.
void lay_out(const Request& request, int rank, int size, BlockLayout& layout);

}  // namespace tutti
