// group_results.hpp: the verbs that return their result, and those that reduce structs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/group.hpp>

namespace tutti {

template <Element T>
Buffer<T> Group::empty(std::size_t count) const {
  const std::shared_ptr<std::byte> memory = take_memory(count * sizeof(T));
  return Buffer<T>(memory, reinterpret_cast<T*>(memory.get()), count);
}

template <class Result>
Result Group::collect(Request request, Duration timeout) const {
  Result result;
  request.allocate = [&result](DType, std::span<const std::int64_t> shape, std::uint8_t) {
    result.resize(static_cast<std::size_t>(shape[0]));
    return View(result);
  };
  run(std::move(request), timeout);
  return result;
}

// ---- one value

template <detail::Value T>
T Group::all_reduce(T value, const ReduceOptions& o) const {
  all_reduce(View(std::span(&value, 1)), o);
  return value;
}

template <detail::Value T>
T Group::reduce(T value, const RootedReduceOptions& o) const {
  reduce(View(std::span(&value, 1)), o);
  return value;
}

template <detail::AnyValue T>
T Group::broadcast(T value, const RootOptions& o) const {
  broadcast(View(std::span(&value, 1)), o);
  return value;
}

template <detail::Value T>
T Group::scan(T value, const ReduceOptions& o) const {
  scan(View(std::span(&value, 1)), o);
  return value;
}

template <detail::Value T>
T Group::exscan(T value, const ReduceOptions& o) const {
  exscan(View(std::span(&value, 1)), o);
  return value;
}

template <detail::AnyValue T>
std::vector<T> Group::all_gather(T value, const CallOptions& o) const {
  static_assert(!std::is_same_v<T, bool>, "tutti: std::vector<bool> has no elements in memory: gather int(x)");
  std::vector<T> all(static_cast<std::size_t>(size()));
  all_gather(View(std::span(&value, 1)), View(all), {.timeout = o.timeout});
  return all;
}

template <detail::AnyValue T>
std::vector<T> Group::gather(T value, const RootOptions& o) const {
  static_assert(!std::is_same_v<T, bool>, "tutti: std::vector<bool> has no elements in memory: gather int(x)");
  std::vector<T> all(rank() == o.root ? static_cast<std::size_t>(size()) : 0);
  gather(View(std::span(&value, 1)), rank() == o.root ? View(all) : View(), {.root = o.root, .timeout = o.timeout});
  return all;
}

// ---- ranges

template <detail::Unwritten R>
auto Group::all_reduce(R&& data, const ReduceOptions& o) const {
  if constexpr (ConstRange<R>) {
    std::vector<detail::ValueOf<R>> result(std::ranges::size(data));
    all_reduce(View(data), View(result), o);
    return result;
  } else {
    all_reduce(View(data), o);
    return std::remove_cvref_t<R>(std::move(data));
  }
}

template <Returnable R>
auto Group::all_gather(R&& data, const AllGatherValueOptions& o) const {
  return collect<detail::ResultOf<R>>({.verb = Verb::all_gather, .input = data, .uneven = o.uneven, .sizes = o.sizes},
                                      o.timeout);
}

template <Returnable R>
auto Group::gather(R&& data, const GatherValueOptions& o) const {
  return collect<detail::ResultOf<R>>(
      {.verb = Verb::gather, .input = data, .root = o.root, .uneven = o.uneven, .sizes = o.sizes}, o.timeout);
}

template <Returnable R>
auto Group::reduce_scatter(R&& data, const ReduceScatterValueOptions& o) const {
  return collect<detail::ResultOf<R>>({.verb = Verb::reduce_scatter, .input = data, .op = o.op, .sizes = o.sizes},
                                      o.timeout);
}

template <Returnable R>
auto Group::all_to_all(R&& data, const AllToAllValueOptions& o) const {
  return collect<detail::ResultOf<R>>(
      {.verb = Verb::all_to_all, .input = data, .sizes = o.split_sizes, .recv_sizes = o.recv_sizes}, o.timeout);
}

template <Returnable R>
auto Group::broadcast_from(R&& data_at_root, const RootOptions& o) const {
  const View input = rank() == o.root ? View(data_at_root) : View();
  return collect<detail::ResultOf<R>>({.verb = Verb::broadcast, .input = input, .root = o.root, .sizes_follow = true},
                                      o.timeout);
}

template <Returnable R>
auto Group::scatter_from(R&& data_at_root, const ScatterValueOptions& o) const {
  const View input = rank() == o.root ? View(data_at_root) : View();
  return collect<detail::ResultOf<R>>(
      {.verb = Verb::scatter, .input = input, .root = o.root, .sizes = o.sizes, .sizes_follow = true}, o.timeout);
}

template <Returnable R>
auto Group::gather_uneven(R&& data, const RootOptions& o) const {
  using T = detail::ValueOf<R>;
  Sizes counts = all_gather(static_cast<std::int64_t>(std::ranges::size(data)), {.timeout = o.timeout});
  Uneven<T> all{.values = collect<std::vector<T>>(
                    {.verb = Verb::gather, .input = data, .root = o.root, .uneven = true, .sizes = counts}, o.timeout)};
  if (rank() == o.root) all.counts = std::move(counts);
  return all;
}

template <Returnable R>
auto Group::all_gather_uneven(R&& data, const CallOptions& o) const {
  using T = detail::ValueOf<R>;
  Sizes counts = all_gather(static_cast<std::int64_t>(std::ranges::size(data)), {.timeout = o.timeout});
  auto values =
      collect<std::vector<T>>({.verb = Verb::all_gather, .input = data, .uneven = true, .sizes = counts}, o.timeout);
  return Uneven<T>{.values = std::move(values), .counts = std::move(counts)};
}

// ---- structs

template <detail::StructValue T>
T Group::all_reduce(T value, const OwnReduceOptions<T>& o) const {
  all_reduce(View(std::span(&value, 1)), ReduceOptions{.op = o.op, .timeout = o.timeout});
  return value;
}
template <detail::StructValue T>
T Group::reduce(T value, const OwnRootedReduceOptions<T>& o) const {
  reduce(View(std::span(&value, 1)), RootedReduceOptions{.root = o.root, .op = o.op, .timeout = o.timeout});
  return value;
}
template <detail::StructValue T>
T Group::scan(T value, const OwnReduceOptions<T>& o) const {
  scan(View(std::span(&value, 1)), ReduceOptions{.op = o.op, .timeout = o.timeout});
  return value;
}

template <detail::StructRange R>
void Group::all_reduce(R&& data, const OwnReduceOptions<detail::ValueOf<R>>& o) const {
  all_reduce(View(data), ReduceOptions{.op = o.op, .timeout = o.timeout});
}
template <detail::StructRange R>
void Group::reduce(R&& data, const OwnRootedReduceOptions<detail::ValueOf<R>>& o) const {
  reduce(View(data), RootedReduceOptions{.root = o.root, .op = o.op, .timeout = o.timeout});
}
template <detail::StructRange R>
void Group::scan(R&& data, const OwnReduceOptions<detail::ValueOf<R>>& o) const {
  scan(View(data), ReduceOptions{.op = o.op, .timeout = o.timeout});
}
template <detail::StructRange R>
void Group::exscan(R&& data, const OwnReduceOptions<detail::ValueOf<R>>& o) const {
  exscan(View(data), ReduceOptions{.op = o.op, .timeout = o.timeout});
}

// Wrong uses.
template <class T>
void Group::broadcast(View, const T&) const {
  detail::explain_option<T>();
}
template <detail::OptionValue T>
void Group::all_reduce(View, const T&) const {
  detail::explain_no_array<T>();
}
template <detail::OptionValue T>
void Group::reduce(View, const T&) const {
  detail::explain_no_array<T>();
}

}  // namespace tutti
