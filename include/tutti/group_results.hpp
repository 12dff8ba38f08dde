// group_results.hpp: the verbs that return their result as a vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/group.hpp>

namespace tutti {

template <Element T>
Buffer<T> Group::empty(std::size_t count) {
  const std::shared_ptr<std::byte> memory = take_memory(count * sizeof(T));
  return Buffer<T>(memory, reinterpret_cast<T*>(memory.get()), count);
}

template <class T>
std::vector<T> Group::collect(Request request, Duration timeout) {
  std::vector<T> result;
  request.allocate = [&result](DType, std::span<const std::int64_t> shape, std::uint8_t) {
    result.resize(static_cast<std::size_t>(shape[0]));
    return View(result);
  };
  run(std::move(request), timeout);
  return result;
}

template <Returnable R>
auto Group::all_gather(R&& data, const JoinOptions& o) {
  using T = std::ranges::range_value_t<R>;
  return collect<T>({.verb = Verb::all_gather, .input = data, .uneven = o.uneven, .sizes = o.sizes}, o.timeout);
}

template <Returnable R>
auto Group::gather(R&& data, const JoinOptions& o) {
  using T = std::ranges::range_value_t<R>;
  return collect<T>({.verb = Verb::gather, .input = data, .root = o.root, .uneven = o.uneven, .sizes = o.sizes},
                    o.timeout);
}

template <Returnable R>
auto Group::reduce_scatter(R&& data, const SplitOptions& o) {
  using T = std::ranges::range_value_t<R>;
  return collect<T>({.verb = Verb::reduce_scatter, .input = data, .op = o.op, .sizes = o.sizes}, o.timeout);
}

template <Returnable R>
auto Group::all_to_all(R&& data, const ExchangeOptions& o) {
  using T = std::ranges::range_value_t<R>;
  return collect<T>({.verb = Verb::all_to_all, .input = data, .sizes = o.split_sizes, .recv_sizes = o.recv_sizes},
                    o.timeout);
}

template <Returnable R>
auto Group::broadcast_from(R&& data_at_root, const RootOptions& o) {
  using T = std::ranges::range_value_t<R>;
  const View input = rank() == o.root ? View(data_at_root) : View();
  return collect<T>({.verb = Verb::broadcast, .input = input, .root = o.root, .sizes_follow = true}, o.timeout);
}

template <Returnable R>
auto Group::scatter_from(R&& data_at_root, const SplitOptions& o) {
  using T = std::ranges::range_value_t<R>;
  const View input = rank() == o.root ? View(data_at_root) : View();
  return collect<T>({.verb = Verb::scatter, .input = input, .root = o.root, .sizes = o.sizes, .sizes_follow = true},
                    o.timeout);
}

}  // namespace tutti
