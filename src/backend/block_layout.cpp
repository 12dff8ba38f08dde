// block_layout.cpp: how the arrays of a request fall into blocks, one per rank.
// SPDX-License-Identifier: Apache-2.0
#include "backend/block_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include <tutti/error.hpp>

namespace tutti {

View Slices::slice(int rank) const {
  const auto begin = std::accumulate(sizes.begin(), sizes.begin() + rank, std::int64_t{0});
  return whole.slice(axis, begin, sizes[static_cast<std::size_t>(rank)]);
}

std::int64_t Slices::count(int rank) const {
  std::int64_t count = sizes[static_cast<std::size_t>(rank)];
  for (int i = 0; i < whole.axes(); ++i) {
    if (i != axis) count *= whole.shape()[static_cast<std::size_t>(i)];
  }
  return count;
}

bool Slices::adjacent() const {
  if (!whole.is_contiguous()) return false;
  for (int i = 0; i < axis; ++i) {
    if (whole.shape()[static_cast<std::size_t>(i)] != 1) return whole.count() == 0;
  }
  return true;
}

namespace {

/// The request's own sizes, or `length` cut into equal parts.
void assign_parts(std::vector<std::int64_t>& sizes, const Request& request, std::int64_t length, int size) {
  const Verb verb = request.verb;
  const int axis = request.stack ? 0 : request.axis;
  if (!request.sizes.empty()) {
    sizes = request.sizes;
    return;
  }
  if (length % size != 0) {
    throw InvalidArgument(
        fmt::format("{}: axis {} has length {}, which {} ranks cannot share equally; give sizes, one per rank",
                    name_of(verb), axis, length, size));
  }
  sizes.assign(static_cast<std::size_t>(size), length / size);
}

void assign_shape(std::vector<std::int64_t>& shape, const View& view) {
  shape.assign(view.shape().begin(), view.shape().end());
}

/// Joining: every rank's block goes into the output along `axis`.
void lay_out_join(BlockLayout& layout, const Request& request) {
  layout.has_output = !root_gets(request.verb) || layout.rank == request.root;
  layout.output_in_blocks = layout.has_output;
  assign_shape(layout.output_shape, request.input);
  layout.output_axis = request.stack ? 0 : request.axis;
  const auto axis = static_cast<std::size_t>(layout.output_axis);
  if (request.stack) {
    layout.output_shape.insert(layout.output_shape.begin(), layout.size);
    layout.output_sizes.assign(static_cast<std::size_t>(layout.size), 1);
    return;
  }
  layout.output_sizes = request.sizes;
  if (layout.output_sizes.empty()) {
    layout.output_sizes.assign(static_cast<std::size_t>(layout.size), layout.output_shape[axis]);
  }
  layout.output_shape[axis] = std::accumulate(layout.output_sizes.begin(), layout.output_sizes.end(), std::int64_t{0});
}

/// Splitting: this rank keeps its block of the input (of the root's input, for scatter). Off the root a scatter knows its
/// part by the output that was passed, so there `input` is not needed.
void lay_out_split(BlockLayout& layout, const Request& request) {
  layout.has_output = true;
  layout.input_axis = request.stack ? 0 : request.axis;
  const auto axis = static_cast<std::size_t>(layout.input_axis);
  const auto me = static_cast<std::size_t>(layout.rank);
  layout.input_in_blocks = !root_gives(request.verb) || layout.rank == request.root;
  if (!layout.input_in_blocks) {
    assign_shape(layout.output_shape, request.output);
    layout.input_sizes = request.sizes;
    if (layout.input_sizes.empty() && !request.stack) {
      layout.input_sizes.assign(static_cast<std::size_t>(layout.size), layout.output_shape[axis]);
    }
    return;
  }
  assign_shape(layout.output_shape, request.input);
  assign_parts(layout.input_sizes, request, layout.output_shape[axis], layout.size);
  layout.output_shape[axis] = layout.input_sizes[me];
  if (request.stack) layout.output_shape.erase(layout.output_shape.begin());
}

void lay_out_exchange(BlockLayout& layout, const Request& request) {
  layout.has_output = true;
  layout.input_in_blocks = layout.output_in_blocks = true;
  layout.input_axis = request.axis;
  layout.output_axis = request.concat_axis;
  assign_shape(layout.output_shape, request.input);
  const auto split = static_cast<std::size_t>(layout.input_axis);
  const auto concat = static_cast<std::size_t>(layout.output_axis);
  assign_parts(layout.input_sizes, request, layout.output_shape[split], layout.size);
  layout.output_shape[split] = layout.input_sizes[static_cast<std::size_t>(layout.rank)];
  layout.output_sizes = request.recv_sizes;
  if (layout.output_sizes.empty()) {
    layout.output_sizes.assign(static_cast<std::size_t>(layout.size), layout.output_shape[concat]);
  }
  layout.output_shape[concat] =
      std::accumulate(layout.output_sizes.begin(), layout.output_sizes.end(), std::int64_t{0});
}

}  // namespace

void lay_out(const Request& request, int rank, int size, BlockLayout& layout) {
  layout.verb = request.verb;
  layout.rank = rank;
  layout.size = size;
  layout.input_in_blocks = layout.output_in_blocks = layout.has_output = false;
  layout.input_axis = layout.output_axis = 0;
  layout.input_sizes.clear();
  layout.output_sizes.clear();
  layout.output_shape.clear();
  switch (traits_of(request.verb).blocks) {
    case VerbTraits::Blocks::joined: lay_out_join(layout, request); break;
    case VerbTraits::Blocks::split: lay_out_split(layout, request); break;
    case VerbTraits::Blocks::exchanged: lay_out_exchange(layout, request); break;
    case VerbTraits::Blocks::none:
      if (!keeps_shape(request.verb)) break;
      layout.has_output = !root_gets(request.verb) || rank == request.root;
      assign_shape(layout.output_shape, request.input.present() ? request.input : request.output);
  }
}

}  // namespace tutti
