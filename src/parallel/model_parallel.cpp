// model_parallel.cpp: tensor parallelism: each function is a copy in memory or one collective, and so is the way back.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tutti/error.hpp>
#include <tutti/model_parallel.hpp>
#include <tutti/shard.hpp>

#include "base/extent.hpp"
#include "kernel/kernel.hpp"

namespace tutti::model_parallel {
namespace {

std::optional<std::size_t> axis_in(std::size_t axes, int dim) {
  const int count = static_cast<int>(axes);
  if (dim < -count || dim >= count) return std::nullopt;
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

std::size_t require_axis(std::span<const std::int64_t> shape, int dim) {
  if (const auto axis = axis_in(shape.size(), dim)) return *axis;
  throw InvalidArgument(fmt::format("cannot split dim {} of an array of shape [{}]: it has {} of them", dim,
                                    fmt::join(shape, ", "), shape.size()));
}

Range own_range(const Group& group, std::int64_t length) {
  if (group.rank() < 0) throw InvalidArgument("cannot split an array over a group that this rank is not in");
  return shard_of(length, group.size(), group.rank());
}

bool are_the_same(const View& a, const View& b) {
  return a.data() == b.data() && std::ranges::equal(a.strides(), b.strides());
}

/// What needs no other rank.
void copy_here(std::string_view what, const View& from, const View& to) {
  const auto refuse = [what](const std::string& why) { throw InvalidArgument(fmt::format("{}: {}", what, why)); };
  if (!from.present() || !to.present()) refuse("there is no array");
  if (from.device() != Device{} || to.device() != Device{}) refuse("only arrays in the memory of the host can be used");
  if (to.is_read_only()) refuse("the array for the result is read-only; pass a writable one");
  if (from.dtype() != to.dtype() || !std::ranges::equal(from.shape(), to.shape())) {
    refuse(fmt::format("the result is {} of shape [{}], but the array for it is {} of shape [{}]",
                       name_of(from.dtype()), fmt::join(from.shape(), ", "), name_of(to.dtype()),
                       fmt::join(to.shape(), ", ")));
  }
  if (are_the_same(from, to)) return;
  if (overlap(from, to)) refuse("input and result overlap; use separate memory");
  kernel::copy(to, from);
}

void take_part(std::string_view what, const Group& group, const View& whole, const View& part,
               const std::optional<int>& dim) {
  copy_here(what, dim ? part_of(group, whole, *dim) : whole, part);
}

void join_parts(std::string_view what, Group& group, const View& part, const View& whole, const Options& options) {
  if (!options.dim) return copy_here(what, part, whole);
  // A dim that does not exist, or a group without this rank, is left to the call: it refuses, and tells the other ranks.
  Sizes sizes;
  if (const auto axis = axis_in(whole.shape().size(), *options.dim); axis && group.size() > 0) {
    sizes = shard_sizes(whole.shape()[*axis], group.size());
  }
  group.all_gather(part, whole,
                   {.axis = *options.dim, .uneven = true, .sizes = std::move(sizes), .timeout = options.timeout});
}

}  // namespace

View part_of(const Group& group, const View& whole, int dim) {
  const std::size_t axis = require_axis(whole.shape(), dim);
  const Range own = own_range(group, whole.shape()[axis]);
  return whole.slice(static_cast<int>(axis), own.begin, own.length);
}

std::vector<std::int64_t> part_shape(const Group& group, std::span<const std::int64_t> whole, int dim) {
  const std::size_t axis = require_axis(whole, dim);
  std::vector<std::int64_t> shape(whole.begin(), whole.end());
  shape[axis] = own_range(group, whole[axis]).length;
  return shape;
}

void copy(Group& /*group*/, View x, View out) { copy_here("model_parallel::copy", x, out); }

void copy_backward(Group& group, View gradient, View out, const CallOptions& options) {
  group.all_reduce(gradient, out, {.timeout = options.timeout});
}

void copy_backward(Group& group, View gradient, const CallOptions& options) {
  group.all_reduce(gradient, {.timeout = options.timeout});
}

void reduce(Group& group, View x, View out, const CallOptions& options) {
  group.all_reduce(x, out, {.timeout = options.timeout});
}

void reduce(Group& group, View x, const CallOptions& options) { group.all_reduce(x, {.timeout = options.timeout}); }

void reduce_backward(Group& /*group*/, View gradient, View out) {
  copy_here("model_parallel::reduce_backward", gradient, out);
}

void scatter(Group& group, View whole, View part, const Options& options) {
  take_part("model_parallel::scatter", group, whole, part, options.dim);
}

void scatter_backward(Group& group, View part_gradient, View whole_gradient, const Options& options) {
  join_parts("model_parallel::scatter_backward", group, part_gradient, whole_gradient, options);
}

void gather(Group& group, View part, View whole, const Options& options) {
  join_parts("model_parallel::gather", group, part, whole, options);
}

void gather_backward(Group& group, View whole_gradient, View part_gradient, const Options& options) {
  take_part("model_parallel::gather_backward", group, whole_gradient, part_gradient, options.dim);
}

}  // namespace tutti::model_parallel
