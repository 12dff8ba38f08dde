// lowering.cpp: from a checked request to what an executor works on.
// SPDX-License-Identifier: Apache-2.0
#include "backend/lowering.hpp"

#include <algorithm>
#include <numeric>

namespace tutti {
namespace {

bool all_equal(const std::vector<std::int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

std::int64_t count_of(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Counts in elements, from sizes along the axis: the other axes are the same for all ranks.
void fill_block_counts(const Request& request, const BlockLayout& layout, Spec& spec) {
  const bool is_joined = joins(request.verb);
  const View& mine = request.input.present() ? request.input : request.output;
  const bool one_entry_each = request.stack && (is_joined || !layout.input_in_blocks);
  const int axis = one_entry_each ? -1 : is_joined ? layout.output_axis : layout.input_axis;
  std::int64_t per_entry = 1;
  for (int i = 0; i < mine.axes(); ++i) per_entry *= i == axis ? 1 : mine.shape()[static_cast<std::size_t>(i)];

  spec.counts = is_joined ? layout.output_sizes : layout.input_sizes;
  if (spec.counts.empty())
    spec.counts.assign(static_cast<std::size_t>(spec.size), 1);  // a stacked scatter, off the root
  for (auto& count : spec.counts) count *= per_entry;
  if (request.verb == Verb::all_to_all) {
    std::int64_t per_received = 1;
    for (std::size_t i = 0; i < layout.output_shape.size(); ++i) {
      per_received *= static_cast<int>(i) == layout.output_axis ? 1 : layout.output_shape[i];
    }
    spec.recv_counts = layout.output_sizes;
    for (auto& count : spec.recv_counts) count *= per_received;
  }
  // One rank's counts of an uneven exchange may happen to be equal: what the ranks agreed on decides, not the numbers.
  const bool even = request.verb == Verb::all_to_all ? request.sizes.empty() : all_equal(spec.counts);
  if (even) {
    spec.count = spec.counts[0];
    spec.counts.clear();
    spec.recv_counts.clear();
  }
}

/// Structs that only move are bytes to everything below.
void count_in_bytes(ExecutionSpec& what) {
  const auto bytes = static_cast<std::int64_t>(size_of(what.dtype));
  what.spec.count *= bytes;
  for (auto& count : what.spec.counts) count *= bytes;
  for (auto& count : what.spec.recv_counts) count *= bytes;
  what.dtype = DType::uint8;
}

}  // namespace

DType dtype_on_the_wire(const Request& request, DType dtype, const Executor& executor) {
  const Op::Kind op = request.op.kind();
  const bool is_scaled = op == Op::Kind::mean || op == Op::Kind::premul;
  const bool is_widened = reduces(request.verb) && is_small_float(dtype) && op != Op::Kind::own &&
                          (is_scaled || !executor.widens_small_floats());
  return is_widened ? DType::float32 : dtype;
}

void lower(const Request& request, const BlockLayout& layout, const GroupFacts& facts, ExecutionSpec& what) {
  what.op = request.op;
  what.divisor = static_cast<double>(facts.size);
  what.signature = request.signature;
  what.phase = data_phase;
  Spec& spec = what.spec;
  spec.verb = request.verb;
  spec.rank = facts.rank;
  spec.size = facts.size;
  spec.root = has_root(request.verb) ? request.root : 0;
  spec.count = 0;
  spec.counts.clear();
  spec.recv_counts.clear();
  spec.pairs.clear();
  spec.finish = reduces(request.verb) && request.op.kind() == Op::Kind::mean;
  spec.in_rank_order = reduces(request.verb) && request.op.keeps_rank_order();
  spec.node_of = facts.node_of;
  if (request.verb == Verb::permute) spec.pairs = request.pairs;
  if (has_blocks(request.verb)) {
    fill_block_counts(request, layout, spec);
  } else if (request.verb != Verb::barrier) {
    spec.count = count_of(layout.output_shape);
  }
  if (is_struct(what.dtype) && !reduces(request.verb)) count_in_bytes(what);
}

bool is_in_place(const ExecutionSpec& what, const BlockLayout& layout, const Buffers& arrays) {
  const auto [input, output, allocate] = arrays;
  if (input == nullptr || output == nullptr) return false;
  if (layout.input_in_blocks == layout.output_in_blocks) return input == output;
  const Spec& spec = what.spec;
  std::int64_t own_block = 0;
  for (int i = 0; i < layout.rank; ++i)
    own_block += spec.counts.empty() ? spec.count : spec.counts[static_cast<std::size_t>(i)];
  const std::int64_t own_bytes = own_block * static_cast<std::int64_t>(size_of(what.dtype));
  return layout.output_in_blocks ? input == output + own_bytes : output == input + own_bytes;
}

}  // namespace tutti
