// model_parallel.hpp: tensor parallelism: the collectives of a split layer, forward and backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tutti/group.hpp>

/// The ranks of a group hold parts of one model and compute one loss, the same on each of them. Four functions do all
/// of the communication; each has a counterpart for the gradients:
///
///     function   forward                    backward
///     copy       nothing                    sum over the ranks
///     reduce     sum over the ranks         nothing
///     scatter    this rank's part           the ranks' parts joined
///     gather     the ranks' parts joined    this rank's part
///
///     namespace mp = tutti::model_parallel;                          // a layer whose inputs are split ("rows"):
///     mp::scatter(group, x, own, {.dim = 1});                        //   own = this rank's columns of x
///     …                                                              //   y = own · weight, this rank's summand
///     mp::reduce(group, y);                                          //   y = the whole, on every rank
///     …                                                              //   gradient = dy · weightᵀ, of `own`
///     mp::scatter_backward(group, gradient, dx, {.dim = 1});         //   dx = that of x, on every rank
///
/// Lengths that the ranks do not divide are split as shard_sizes() says: the first ranks get one more. Input and output
/// have the same dtype and may have any strides. They must not overlap, except that copy and reduce accept the same
/// array twice. "nothing" and "this rank's part" are local; everything else is collective.
namespace tutti::model_parallel {

struct Options {
  /// The axis that is split; −1 is the last. Without one (std::nullopt) the array stays whole, on both sides.
  std::optional<int> dim = -1;
  Duration timeout{};
};

/// This rank's part of an array along an axis, in the array's own memory.
[[nodiscard]] View part_of(const Group& group, const View& whole, int dim = -1);
/// The shape of that part.
[[nodiscard]] std::vector<std::int64_t> part_shape(const Group& group, std::span<const std::int64_t> whole,
                                                   int dim = -1);

/// For an array that every rank uses in its own part of the work.
void copy(Group& group, View x, View out);
void copy_backward(Group& group, View gradient, View out, const CallOptions& options = {});
/// In place.
void copy_backward(Group& group, View gradient, const CallOptions& options = {});

/// For an array of which each rank holds one summand.
void reduce(Group& group, View x, View out, const CallOptions& options = {});
/// In place.
void reduce(Group& group, View x, const CallOptions& options = {});
void reduce_backward(Group& group, View gradient, View out);

void scatter(Group& group, View whole, View part, const Options& options = {});
void scatter_backward(Group& group, View part_gradient, View whole_gradient, const Options& options = {});

void gather(Group& group, View part, View whole, const Options& options = {});
void gather_backward(Group& group, View whole_gradient, View part_gradient, const Options& options = {});

}  // namespace tutti::model_parallel
