// group_results.hpp: the verbs that return their result as a vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/group.hpp>

namespace tutti {
namespace detail {

/// A request whose output becomes `result` once its size is known.
template <class T>
Request into_vector(Verb verb, View data, std::vector<T>& result) {
  Request request{.verb = verb, .input = data};
  request.allocate = [&result](DType, std::span<const std::int64_t> shape) {
    result.resize(static_cast<std::size_t>(shape.empty() ? 1 : shape[0]));
    return View(result);
  };
  return request;
}

}  // namespace detail

template <Returnable R>
auto Group::all_gather(R&& data, const JoinOptions& options) {
  std::vector<std::ranges::range_value_t<R>> result;
  Request request = detail::into_vector(Verb::all_gather, View(data), result);
  request.uneven = options.uneven;
  request.sizes = options.sizes;
  run(std::move(request), options.timeout);
  return result;
}

template <Returnable R>
auto Group::gather(R&& data, const JoinOptions& options) {
  std::vector<std::ranges::range_value_t<R>> result;
  Request request = detail::into_vector(Verb::gather, View(data), result);
  request.root = options.root;
  request.uneven = options.uneven;
  request.sizes = options.sizes;
  run(std::move(request), options.timeout);
  return result;
}

template <Returnable R>
auto Group::reduce_scatter(R&& data, const SplitOptions& options) {
  std::vector<std::ranges::range_value_t<R>> result;
  Request request = detail::into_vector(Verb::reduce_scatter, View(data), result);
  request.op = options.op;
  request.sizes = options.sizes;
  run(std::move(request), options.timeout);
  return result;
}

template <Returnable R>
auto Group::all_to_all(R&& data, const ExchangeOptions& options) {
  std::vector<std::ranges::range_value_t<R>> result;
  Request request = detail::into_vector(Verb::all_to_all, View(data), result);
  request.sizes = options.split_sizes;
  request.recv_sizes = options.recv_sizes;
  run(std::move(request), options.timeout);
  return result;
}

template <Returnable R>
auto Group::broadcast_from(R&& data_at_root, const RootOptions& options) {
  std::vector<std::ranges::range_value_t<R>> result;
  const bool is_root = rank() == options.root;
  Request request = detail::into_vector(Verb::broadcast, is_root ? View(data_at_root) : View(), result);
  request.root = options.root;
  request.sizes_follow = true;
  run(std::move(request), options.timeout);
  return result;
}

template <Returnable R>
auto Group::scatter_from(R&& data_at_root, const SplitOptions& options) {
  std::vector<std::ranges::range_value_t<R>> result;
  const bool is_root = rank() == options.root;
  Request request = detail::into_vector(Verb::scatter, is_root ? View(data_at_root) : View(), result);
  request.root = options.root;
  request.sizes = options.sizes;
  request.sizes_follow = true;
  run(std::move(request), options.timeout);
  return result;
}

}  // namespace tutti
